package gnmi

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/protobuf/proto"

	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/telemetry/otlp"
)

// full is a sample of a switch of 12 ports with a value of every metric.
func full(seed uint64) *counters.Snapshot {
	n := &counters.Snapshot{Devices: []string{"leaf1"}}
	r := rand.New(rand.NewPCG(seed, 1))
	for port := int16(1); port <= 12; port++ {
		for id := range counters.Metrics {
			low, high := int8(0), int8(8)
			switch m := counters.Metrics[id]; m.Scope {
			case counters.Port:
				low, high = -1, 0
			case counters.Priority, counters.PG, counters.Queue:
			default:
				continue
			}
			for i := low; i < high; i++ {
				n.Points = append(n.Points, counters.Point{ID: counters.ID(id), Port: port, Index: i, Value: r.Int64() >> r.IntN(63)})
			}
		}
	}
	return n
}

// filled puts the values of a view into a tree of fields.
func filled(v *View, tree any) any {
	if f, ok := tree.(field); ok {
		return strconv.FormatInt(v.number(&f), 10)
	}
	out := map[string]any{}
	for k, below := range tree.(map[string]any) {
		out[k] = filled(v, below)
	}
	return out
}

// Templates give what encoding/json makes of the values in maps, byte for byte,
// and the same bytes to all who ask.
func TestTemplatesAreJSON(t *testing.T) {
	s := NewStore("leaf1", otlp.TimeMap{Epoch: epoch})
	for seed := range uint64(5) {
		s.Publish(full(seed))
		v := s.View()
		for _, table := range []string{"COUNTERS", "PERIODIC_WATERMARKS", "USER_WATERMARKS", "PERSISTENT_WATERMARKS"} {
			for _, rest := range []string{
				"", "/Ethernet*", "/Ethernet1", "/Ethernet*/Queues", "/Ethernet*/PriorityGroups", "/Ethernet*/Queues/Ethernet10:1", "/Ethernet11/Queues",
				"/Ethernet3/PriorityGroups/Ethernet3:2", "/Ethernet*/Pfcwd", "/Ethernet*/SAI_PORT_STAT_ECN_MARKED_PACKETS", "/Ethernet4/SAI_PORT_STAT_PFC_2_RX_PAUSE_DURATION_US",
			} {
				elems := strings.Split(table+rest, "/")
				tree, known := v.lay.sonic(elems)
				tmpl, ok := v.lay.template(elems)
				if ok != known {
					t.Fatalf("%s: found %v, want %v", elems, ok, known)
				}
				if !ok {
					continue
				}
				want, _ := json.Marshal(filled(v, tree))
				got := v.json(tmpl)
				if !bytes.Equal(got, want) || !json.Valid(got) {
					t.Fatalf("%s: %.300s\nwant %.300s", elems, got, want)
				}
				if again, _ := v.lay.template(elems); &v.json(again)[0] != &got[0] {
					t.Errorf("%s is encoded twice", elems)
				}
			}
		}
	}
}

// Updates that are packed by hand are what the library makes of them.
func TestPackedUpdatesAreWhatTheLibraryWrites(t *testing.T) {
	s := NewStore("leaf1", otlp.TimeMap{Epoch: epoch})
	s.Publish(full(9))
	v := s.View()
	for _, enc := range encodings {
		for _, p := range []string{"qos", "interfaces/interface[name=Ethernet3]", "interfaces/interface[name=*]/state/counters/out-pkts"} {
			q, err := newQuery(nil, path(p))
			if err != nil {
				t.Fatal(err)
			}
			got, err := v.notification(q, enc, &pb.Path{Target: "leaf1"})
			if err != nil {
				t.Fatal(err)
			}
			want := &pb.Notification{Timestamp: v.Stamp, Prefix: &pb.Path{Target: "leaf1"}}
			for _, l := range q.leaves {
				want.Update = append(want.Update, &pb.Update{Path: l.path, Val: uintValue(l.value(v.points), enc)})
			}
			a, _ := proto.Marshal(got)
			b, _ := proto.MarshalOptions{Deterministic: true}.Marshal(want)
			if !bytes.Equal(a, b) || len(want.Update) < 1 {
				t.Errorf("%s, %v: %d bytes of %d updates, want %d", p, enc, len(a), len(want.Update), len(b))
			}
		}
	}
}
