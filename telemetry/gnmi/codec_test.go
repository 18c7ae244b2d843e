package gnmi

import (
	"bytes"
	"testing"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// What the codec writes is read as what was to be written, whatever a message
// is, and large values are not copied.
func TestCodec(t *testing.T) {
	big := bytes.Repeat([]byte(`"x"`), leastShared)
	path := &pb.Path{Origin: "sonic-db", Elem: []*pb.PathElem{elem("COUNTERS"), elem("Ethernet*", "k", "v")}}
	up := func(p *pb.Path, v *pb.TypedValue) []*pb.Update { return []*pb.Update{{Path: p, Val: v}} }
	ietf, json := &pb.TypedValue{Value: &pb.TypedValue_JsonIetfVal{JsonIetfVal: big}}, &pb.TypedValue{Value: &pb.TypedValue_JsonVal{JsonVal: big}}
	packed := &pb.Notification{Timestamp: 7, Prefix: &pb.Path{Target: "t"}}
	field := protowire.AppendTag(nil, notificationUpdate, protowire.BytesType)
	packed.ProtoReflect().SetUnknown(protowire.AppendBytes(field, packField(nil, updatePath, &pb.Path{Target: string(big)})))
	for i, n := range []*pb.Notification{
		{Timestamp: -1, Prefix: &pb.Path{Target: countersDB}, Update: up(path, ietf)},
		{Timestamp: 1, Update: up(nil, json)},
		packed,
		{Update: append(up(path, ietf), up(path, json)...)},
		{Update: []*pb.Update{{Path: path, Val: ietf, Duplicates: 3}}},
		{Update: up(path, ietf), Atomic: true},
		{Update: up(path, ietf), Delete: []*pb.Path{path}},
		{Update: up(path, uintValue(5, pb.Encoding_PROTO))},
		{},
	} {
		r := &pb.SubscribeResponse{Response: &pb.SubscribeResponse_Update{Update: n}}
		s, err := newCodec().Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		want, err := proto.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(s.Materialize(), want) {
			t.Errorf("message %d is written in another way", i)
		}
		if shared := i < 3; shared != (len(s) == 2) {
			t.Errorf("message %d comes in %d pieces", i, len(s))
		}
	}
	for _, m := range []proto.Message{&pb.SubscribeResponse{Response: &pb.SubscribeResponse_SyncResponse{SyncResponse: true}}, &pb.GetResponse{}} {
		if s, err := newCodec().Marshal(m); err != nil || !proto.Equal(m, reread(t, s.Materialize(), m)) {
			t.Errorf("%v: %v", m, err)
		}
	}
}

func reread(t *testing.T, b []byte, like proto.Message) proto.Message {
	t.Helper()
	m := like.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(b, m); err != nil {
		t.Fatal(err)
	}
	return m
}
