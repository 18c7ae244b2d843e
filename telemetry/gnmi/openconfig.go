package gnmi

import (
	"strconv"

	pb "github.com/openconfig/gnmi/proto/gnmi"

	"github.com/rocemu/rocemu/report/counters"
)

// ocLeaf is one OpenConfig value: the sum of some points.
type ocLeaf struct {
	path   *pb.Path
	name   string // path as text
	packed []byte // path, as a field of an Update on the wire
	of     []int  // positions among the device's points
}

func (l *ocLeaf) value(points []counters.Point) (sum uint64) {
	for _, i := range l.of {
		sum += uint64(points[i].Value)
	}
	return sum
}

// ocPort and ocQueue are the leaves below a port's counters and a queue's
// state. OpenConfig has none for PFC: see SONiC's paths.
var (
	ocPort = []stat{
		{"in-octets", counters.RxBytes},
		{"in-pkts", counters.RxFrames},
		{"in-discards", counters.InDrops},
		{"in-fcs-errors", counters.CRCErrors},
		{"out-octets", counters.TxBytes},
		{"out-pkts", counters.TxFrames},
	}
	ocQueue = []stat{
		{"max-queue-len", counters.QueueMark},
		{"transmit-pkts", counters.QueueTx},
		{"dropped-pkts", counters.QueueDrops},
		{"ecn-marked-pkts", counters.QueueMarked},
	}
	ocControl = map[string][]counters.ID{
		"in-mac-control-frames":  {counters.PFCRxPause, counters.PFCRxResume},
		"out-mac-control-frames": {counters.PFCTxPause, counters.PFCTxResume},
	}
)

func elem(name string, kv ...string) *pb.PathElem {
	e := &pb.PathElem{Name: name}
	if len(kv) == 2 {
		e.Key = map[string]string{kv[0]: kv[1]}
	}
	return e
}

// openconfig lists the leaves in order of port and queue.
func openconfig(l *layout) (out []ocLeaf) {
	add := func(of []place, path ...*pb.PathElem) {
		leaf := ocLeaf{path: &pb.Path{Origin: "openconfig", Elem: path}, name: pathText(path)}
		leaf.packed = packField(nil, updatePath, leaf.path)
		for _, p := range of {
			if i, ok := l.at[p]; ok {
				leaf.of = append(leaf.of, i)
			}
		}
		out = append(out, leaf)
	}
	for _, n := range l.ports {
		name := portName(n)
		for _, s := range ocPort {
			add([]place{{n, -1, s.id}}, elem("interfaces"), elem("interface", "name", name), elem("state"), elem("counters"), elem(s.name))
		}
		for _, dir := range []string{"in-mac-control-frames", "out-mac-control-frames"} {
			var of []place
			for prio := range 8 {
				for _, id := range ocControl[dir] {
					of = append(of, place{n, prio, id})
				}
			}
			add(of, elem("interfaces"), elem("interface", "name", name), elem("ethernet"), elem("state"), elem("counters"), elem(dir))
		}
		for q := range 8 {
			for _, s := range ocQueue {
				add([]place{{n, q, s.id}}, elem("qos"), elem("interfaces"), elem("interface", "interface-id", name), elem("output"),
					elem("queues"), elem("queue", "name", strconv.Itoa(q)), elem("state"), elem(s.name))
			}
		}
	}
	return out
}

// matches reports whether a query path covers a leaf: equal as far as the query
// goes; a name or key of * matches any, ... matches the rest.
func matches(query, path []*pb.PathElem) bool {
	if len(query) > len(path) {
		return false
	}
	for i, q := range query {
		if q.Name == "..." {
			return true
		}
		if q.Name != "*" && q.Name != path[i].Name {
			return false
		}
		for k, want := range q.Key {
			if want != "*" && path[i].Key[k] != want {
				return false
			}
		}
	}
	return true
}
