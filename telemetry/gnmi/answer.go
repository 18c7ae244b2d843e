package gnmi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// countersDB is the target of SONiC's paths.
const countersDB = "COUNTERS_DB"

// query is one subscribed path, resolved.
type query struct {
	sonic []string       // elements of a COUNTERS_DB path, nil for OpenConfig
	oc    []*pb.PathElem // of an OpenConfig path
	path  *pb.Path       // as the client wrote it, for the answer

	lay    *layout // that leaves are of
	leaves []*ocLeaf
}

// newQuery joins prefix and path. The target, or the origin, says whose path it
// is; without either the first element does.
func newQuery(prefix, path *pb.Path) (*query, error) {
	q := &query{path: path}
	elems := slices.Concat(prefix.GetElem(), path.GetElem())
	//lint:ignore SA1019 old clients send this form
	old := path.GetElement()
	if len(elems) == 0 {
		for _, e := range old {
			elems = append(elems, elem(e))
		}
	}
	if len(prefix.GetElem()) > 0 {
		q.path = &pb.Path{Origin: path.GetOrigin(), Elem: elems}
	}
	if len(elems) > 0 && elems[0].Name == "openconfig" {
		elems = elems[1:] // a client that writes the origin as an element
	}
	name := ""
	if len(elems) > 0 {
		name = elems[0].Name
	}
	sonic := prefix.GetTarget() == countersDB || path.GetTarget() == countersDB || path.GetOrigin() == "sonic-db" || name == "COUNTERS" || strings.HasSuffix(name, "_WATERMARKS")
	if !sonic {
		if name != "" && name != "interfaces" && name != "qos" && name != "*" && name != "..." {
			return q, status.Errorf(codes.NotFound, "no path /%s: want /interfaces, /qos or target COUNTERS_DB with COUNTERS, PERIODIC_WATERMARKS, USER_WATERMARKS, PERSISTENT_WATERMARKS", name)
		}
		q.oc = elems
		return q, nil
	}
	for _, e := range elems {
		if e.Name != countersDB {
			q.sonic = append(q.sonic, e.Name)
		}
	}
	if len(q.sonic) == 0 {
		return q, status.Error(codes.InvalidArgument, "target COUNTERS_DB: the path names no table")
	}
	return q, nil
}

// notification answers a query with all its values.
func (v *View) notification(q *query, enc pb.Encoding, prefix *pb.Path) (*pb.Notification, error) {
	n := &pb.Notification{Timestamp: v.Stamp, Prefix: answerPrefix(prefix)}
	if q.sonic != nil {
		u, err := v.object(q, enc)
		n.Update = []*pb.Update{u}
		return n, err
	}
	leaves, err := q.openconfig(v.lay)
	if err == nil {
		n.ProtoReflect().SetUnknown(v.packed(leaves, enc))
	}
	return n, err
}

// object answers a query of COUNTERS_DB.
func (v *View) object(q *query, enc pb.Encoding) (*pb.Update, error) {
	t, ok := v.lay.template(q.sonic)
	if !ok {
		return nil, status.Errorf(codes.NotFound, "no path %s in COUNTERS_DB", strings.Join(q.sonic, "/"))
	}
	return &pb.Update{Path: q.path, Val: v.value(t, enc)}, nil
}

// openconfig lists the leaves that a query covers.
func (q *query) openconfig(l *layout) ([]*ocLeaf, error) {
	if q.lay != l {
		q.lay, q.leaves = l, nil
		all := l.openconfig()
		for i := range all {
			if matches(q.oc, all[i].path.Elem) {
				q.leaves = append(q.leaves, &all[i])
			}
		}
	}
	if len(q.leaves) == 0 {
		return nil, status.Errorf(codes.NotFound, "nothing under %s", pathText(q.oc))
	}
	return q.leaves, nil
}

// value encodes an object, or a single field as a string.
func (v *View) value(t *template, enc pb.Encoding) *pb.TypedValue {
	if t.plain && enc == pb.Encoding_PROTO {
		return &pb.TypedValue{Value: &pb.TypedValue_StringVal{StringVal: strconv.FormatInt(v.number(&t.parts[0].field), 10)}}
	}
	if enc == pb.Encoding_JSON {
		return &pb.TypedValue{Value: &pb.TypedValue_JsonVal{JsonVal: v.json(t)}}
	}
	return &pb.TypedValue{Value: &pb.TypedValue_JsonIetfVal{JsonIetfVal: v.json(t)}}
}

// uintValue encodes a uint64: JSON_IETF writes it as a string (RFC 7951).
func uintValue(n uint64, enc pb.Encoding) *pb.TypedValue {
	switch enc {
	case pb.Encoding_JSON:
		return &pb.TypedValue{Value: &pb.TypedValue_JsonVal{JsonVal: strconv.AppendUint(nil, n, 10)}}
	case pb.Encoding_JSON_IETF:
		return &pb.TypedValue{Value: &pb.TypedValue_JsonIetfVal{JsonIetfVal: fmt.Appendf(nil, "%q", strconv.FormatUint(n, 10))}}
	}
	return &pb.TypedValue{Value: &pb.TypedValue_UintVal{UintVal: n}}
}

func pathText(elems []*pb.PathElem) string {
	var b strings.Builder
	for _, e := range elems {
		b.WriteString("/" + e.Name)
		for k, v := range e.Key {
			fmt.Fprintf(&b, "[%s=%s]", k, v)
		}
	}
	return b.String()
}

// answerPrefix is the prefix of answers: their paths are whole, so that only
// the target is left of what the client sent.
func answerPrefix(p *pb.Path) *pb.Path {
	if p == nil {
		return nil
	}
	return &pb.Path{Target: p.Target, Origin: p.Origin}
}
