package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

func addSeeds(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(v.b)
		f.Add(binary.LittleEndian.AppendUint32(bytes.Clone(v.b), FCS(v.b)))
	}
	for _, fr := range benchFrames() {
		f.Add(AppendFrame(nil, &fr, FrameContext{}))
	}
	p := samplePacket(WriteOnlyImm, NetIPv6, 2, []byte{1, 2, 3})
	p.Seal()
	f.Add(p.Append(nil))
	f.Add([]byte{})
}

// FuzzDecode: any bytes decode or err with a typed error, never panic, and
// what decodes as a frame value of a known kind can be encoded again when its
// checks are right.
func FuzzDecode(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, dec := range []func([]byte) (Packet, error){Decode, DecodeFCS} {
			p, err := dec(b)
			var e *Error
			if err != nil && !errors.As(err, &e) {
				t.Fatalf("untyped error %v", err)
			}
			if err == nil && len(p.Payload)+len(p.Trailer) > len(b) {
				t.Fatalf("%d bytes of payload out of %d", len(p.Payload)+len(p.Trailer), len(b))
			}
			if err == nil {
				p.ICRCOK()
			}
		}
		fr, err := DecodeFrame(b, FrameContext{})
		if err == nil && int(fr.Len) != len(b) {
			t.Fatalf("Len %d of %d bytes", fr.Len, len(b))
		}
	})
}

// FuzzPacketRoundTrip: bytes → packet → bytes is the identity, and sealing
// makes a packet whose checks are right.
func FuzzPacketRoundTrip(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := DecodeFCS(b)
		if err != nil {
			return
		}
		if got := p.Append(nil); !bytes.Equal(got, b) {
			t.Fatalf("%x written back as %x", b, got)
		}
		if len(b) > 4000 {
			return // sealing may push a length past 16 bits
		}
		p.Seal()
		s := p.Append(nil)
		q, err := DecodeFCS(s)
		if err != nil || !CheckFCS(s) || p.IsRoCE && !q.ICRCOK() {
			t.Fatalf("sealed %x: %v", s, err)
		}
	})
}
