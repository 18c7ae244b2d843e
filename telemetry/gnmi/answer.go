package gnmi

import (
	"encoding/json"
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
}

// newQuery joins prefix and path. The target, or the origin, says whose path it
// is; without either the first element does.
func newQuery(prefix, path *pb.Path) (query, error) {
	q := query{path: path}
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

// updates answers a query out of a view.
func (v *View) updates(q query, enc pb.Encoding) ([]*pb.Update, error) {
	if q.sonic != nil {
		got, ok := v.sonicGet(q.sonic)
		if !ok {
			return nil, status.Errorf(codes.NotFound, "no path %s in COUNTERS_DB", strings.Join(q.sonic, "/"))
		}
		val, err := jsonValue(got, enc)
		return []*pb.Update{{Path: q.path, Val: val}}, err
	}
	var out []*pb.Update
	leaves := v.lay.openconfig()
	for i := range leaves {
		if l := &leaves[i]; matches(q.oc, l.path.Elem) {
			out = append(out, &pb.Update{Path: l.path, Val: uintValue(l.value(v.points), enc)})
		}
	}
	if len(out) == 0 {
		return nil, status.Errorf(codes.NotFound, "nothing under %s", pathText(q.oc))
	}
	return out, nil
}

// jsonValue encodes an object, or a single field as a string.
func jsonValue(v any, enc pb.Encoding) (*pb.TypedValue, error) {
	if s, ok := v.(string); ok && enc == pb.Encoding_PROTO {
		return &pb.TypedValue{Value: &pb.TypedValue_StringVal{StringVal: s}}, nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if enc == pb.Encoding_JSON {
		return &pb.TypedValue{Value: &pb.TypedValue_JsonVal{JsonVal: b}}, nil
	}
	return &pb.TypedValue{Value: &pb.TypedValue_JsonIetfVal{JsonIetfVal: b}}, nil
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
