package gnmi

import (
	"strconv"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Numbers of fields in gnmi.proto.
const (
	notificationUpdate protowire.Number = 4

	updatePath protowire.Number = 1
	updateVal  protowire.Number = 3

	valUint     protowire.Number = 3
	valJSON     protowire.Number = 10
	valJSONIETF protowire.Number = 11
)

// packField appends a message as a field of another.
func packField(b []byte, num protowire.Number, m proto.Message) []byte {
	b = protowire.AppendTag(b, num, protowire.BytesType)
	packed, err := proto.Marshal(m)
	if err != nil {
		panic("gnmi: " + err.Error()) // paths are made here, of valid text
	}
	return protowire.AppendBytes(b, packed)
}

// packed writes leaves as the updates of a Notification are on the wire. A
// switch has some 800 of them, whose paths are the same in each sample and cost
// nearly all of the time when they are encoded anew. Put into the message as
// fields that it does not know, they follow those that it knows: nothing of a
// Notification comes behind its updates here.
func (v *View) packed(leaves []*ocLeaf, enc pb.Encoding) []byte {
	size := 0
	for _, l := range leaves {
		size += len(l.packed) + 3*protowire.SizeBytes(0) + protowire.SizeBytes(20)
	}
	b := make([]byte, 0, size)
	var val []byte
	for _, l := range leaves {
		val = packUint(val[:0], l.value(v.points), enc)
		n := len(l.packed) + protowire.SizeTag(updateVal) + protowire.SizeBytes(len(val))
		b = protowire.AppendTag(b, notificationUpdate, protowire.BytesType)
		b = append(protowire.AppendVarint(b, uint64(n)), l.packed...)
		b = protowire.AppendBytes(protowire.AppendTag(b, updateVal, protowire.BytesType), val)
	}
	return b
}

// packUint is [uintValue] on the wire.
func packUint(b []byte, n uint64, enc pb.Encoding) []byte {
	num, quote := valJSON, ""
	switch enc {
	case pb.Encoding_JSON:
	case pb.Encoding_JSON_IETF:
		num, quote = valJSONIETF, `"`
	default:
		return protowire.AppendVarint(protowire.AppendTag(b, valUint, protowire.VarintType), n)
	}
	var digits [24]byte
	text := append(strconv.AppendUint(append(digits[:0], quote...), n, 10), quote...)
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), text)
}
