package otlp

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of trace.proto, common.proto and resource.proto, as tags: number<<3 |
// wire type. All numbers below 16 take one byte.
const (
	typeVarint  = byte(protowire.VarintType)
	typeFixed64 = byte(protowire.Fixed64Type)
	typeBytes   = byte(protowire.BytesType)
	typeFixed32 = byte(protowire.Fixed32Type)

	resourceAttributes    = 1<<3 | typeBytes
	resourceSpansResource = 1<<3 | typeBytes
	resourceSpansScopes   = 2<<3 | typeBytes
	scopeSpansScope       = 1<<3 | typeBytes
	scopeSpansSpans       = 2<<3 | typeBytes

	spanTraceID    = 1<<3 | typeBytes
	spanID         = 2<<3 | typeBytes
	spanParent     = 4<<3 | typeBytes
	spanName       = 5<<3 | typeBytes
	spanKind       = 6<<3 | typeVarint
	spanStart      = 7<<3 | typeFixed64
	spanEnd        = 8<<3 | typeFixed64
	spanAttributes = 9<<3 | typeBytes
	spanLinks      = 13<<3 | typeBytes
	spanStatus     = 15<<3 | typeBytes
	spanFlags      = 16 // number: its tag takes two bytes

	linkTraceID    = 1<<3 | typeBytes
	linkSpanID     = 2<<3 | typeBytes
	linkAttributes = 4<<3 | typeBytes
	linkFlags      = 6<<3 | typeFixed32

	statusMessage = 2<<3 | typeBytes
	statusCode    = 3<<3 | typeVarint

	pairKey     = 1<<3 | typeBytes
	pairValue   = 2<<3 | typeBytes
	valueString = 1<<3 | typeBytes
	valueInt    = 3<<3 | typeVarint
)

// appendText appends a field of text or bytes.
func appendText[T string | []byte](b []byte, tag byte, s T) []byte {
	return append(protowire.AppendVarint(append(b, tag), uint64(len(s))), s...)
}

// appendFixed64 appends a field of eight bytes.
func appendFixed64(b []byte, tag byte, v uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(b, tag), v)
}

// attr is the key of an attribute: a KeyValue up to its value.
type attr []byte

func key(name string) attr { return appendText(nil, pairKey, name) }

// text appends an attribute with a text.
func (k attr) text(b []byte, tag byte, s string) []byte {
	value := 1 + protowire.SizeBytes(len(s))
	return appendText(k.open(b, tag, value), valueString, s)
}

// number appends an attribute with a number.
func (k attr) number(b []byte, tag byte, n int64) []byte {
	value := 1 + protowire.SizeVarint(uint64(n))
	return protowire.AppendVarint(append(k.open(b, tag, value), valueInt), uint64(n))
}

// open appends an attribute up to its AnyValue of some bytes.
func (k attr) open(b []byte, tag byte, value int) []byte {
	b = protowire.AppendVarint(append(b, tag), uint64(len(k)+1+protowire.SizeBytes(value)))
	b = append(append(b, k...), pairValue)
	return protowire.AppendVarint(b, uint64(value))
}
