package gnmi

import (
	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	_ "google.golang.org/grpc/encoding/proto" // registers what codec stands in for
)

// Numbers of fields in gnmi.proto, from the top.
const responseUpdate protowire.Number = 1

// codec hands large answers to gRPC as they are. The codec that it stands in for
// copies each into a buffer of a mebibyte that is cleared before, which takes
// longer than making the answer.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// leastShared is the size from which it pays to send bytes where they are.
const leastShared = 4 << 10

// Marshal encodes a message; what is large of an answer is not copied, so that
// it must not change any longer.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	r, _ := v.(*pb.SubscribeResponse)
	n := r.GetUpdate()
	if n == nil || len(n.Update) > 1 || len(n.Delete) > 0 || n.Atomic {
		return c.CodecV2.Marshal(v)
	}
	last, num := []byte(n.ProtoReflect().GetUnknown()), protowire.Number(0)
	if len(n.Update) == 1 {
		last, num = jsonOf(n.Update[0])
	}
	if len(last) < leastShared {
		return c.CodecV2.Marshal(v)
	}
	b, err := proto.Marshal(&pb.Notification{Timestamp: n.Timestamp, Prefix: n.Prefix})
	if err != nil {
		return nil, err
	}
	if num > 0 {
		b = openUpdate(b, n.Update[0].Path, num, len(last))
	}
	head := protowire.AppendTag(nil, responseUpdate, protowire.BytesType)
	head = append(protowire.AppendVarint(head, uint64(len(b)+len(last))), b...)
	return mem.BufferSlice{mem.SliceBuffer(head), mem.SliceBuffer(last)}, nil
}

// jsonOf returns the JSON of an update and the number of its field; nothing of
// an update that has more than a path and JSON.
func jsonOf(u *pb.Update) ([]byte, protowire.Number) {
	if u.Duplicates > 0 {
		return nil, 0
	}
	switch x := u.GetVal().GetValue().(type) {
	case *pb.TypedValue_JsonIetfVal:
		return x.JsonIetfVal, valJSONIETF
	case *pb.TypedValue_JsonVal:
		return x.JsonVal, valJSON
	}
	return nil, 0
}

// openUpdate appends an update up to its JSON of n bytes, which follows.
func openUpdate(b []byte, path *pb.Path, num protowire.Number, n int) []byte {
	var p []byte
	if path != nil {
		p = packField(nil, updatePath, path)
	}
	value := protowire.SizeTag(num) + protowire.SizeBytes(n)
	b = protowire.AppendTag(b, notificationUpdate, protowire.BytesType)
	b = append(protowire.AppendVarint(b, uint64(len(p)+protowire.SizeTag(updateVal)+protowire.SizeBytes(value))), p...)
	b = protowire.AppendVarint(protowire.AppendTag(b, updateVal, protowire.BytesType), uint64(value))
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.BytesType), uint64(n))
}
