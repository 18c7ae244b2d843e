package natsbus

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

func randomFrame(r *rand.Rand, at clock.Time) wire.Frame {
	f := wire.Frame{
		At: at, A: r.Uint64(), B: r.Uint64(), C: r.Uint64(), D: r.Uint32(), Src: r.Uint32() % 9, Dst: r.Uint32(),
		Index: r.Uint32(), Len: uint16(r.Uint32()), SPort: uint16(r.Uint32()), Kind: wire.Kind(r.IntN(8)), TOS: uint8(r.Uint32()),
		TTL: uint8(r.Uint32()), Iter: uint8(r.Uint32()),
	}
	f.SetOp(wire.Opcode(r.Uint32()), r.Uint32())
	f.SetPSN(wire.PSN(r.Uint32()))
	f.Set(wire.Flags(r.Uint32()))
	return f
}

func randomContent(seed uint64) *Content {
	r := rand.New(rand.NewPCG(seed, 1))
	c := &Content{Now: clock.Time(r.Int64N(1e12)), Summary: actors.Summary{
		Next: clock.Never, NextWork: clock.Time(r.Int64()), NextFault: clock.Never,
		LastWork: clock.Time(r.Int64()), Stop: clock.Never, Outstanding: -r.Int64(),
	}}
	for range r.IntN(5) {
		x := actors.Remote{Src: r.Int32N(1 << 30), Dst: r.Int32N(1 << 20), SrcPort: uint16(r.IntN(maxPort)), DstPort: uint16(r.IntN(maxPort))}
		at := c.Now
		for range r.IntN(20) {
			at += clock.Time(r.Int64N(1e6))
			x.Frames = append(x.Frames, randomFrame(r, at))
		}
		for range r.IntN(4) {
			x.Late = append(x.Late, randomFrame(r, c.Now+clock.Time(r.Int64N(1e6))))
		}
		c.Remotes = append(c.Remotes, x)
	}
	return c
}

func TestRoundTrip(t *testing.T) {
	for seed := range uint64(500) {
		c := randomContent(seed)
		b := c.Encode(nil)
		got, err := Decode(b)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !reflect.DeepEqual(c, got) {
			t.Fatalf("seed %d: comes back different", seed)
		}
	}
}

// A burst of data packets of a few QPs, as an uplink carries it.
func TestCommonFramesAreSmall(t *testing.T) {
	r := actors.Remote{Src: 3, SrcPort: 2, Dst: 1, DstPort: 4}
	c := &Content{Now: 1e9, Remotes: []actors.Remote{r}}
	base := len(c.Encode(nil))
	at := c.Now
	const n = 400
	for i := range n {
		at += 334_240
		f := wire.Frame{
			At: at, A: uint64(i) * 4096, C: clock.Mix(1, uint64(i), 2), Src: uint32(1 + i%8), Dst: uint32(9 + i%8), Index: uint32(i / 8),
			Len: 4178, SPort: uint16(0xC000 + i%8), TOS: 106, TTL: 62, Iter: 1,
		}
		f.SetOp(wire.WriteMiddle, uint32(0x11+i%8))
		f.SetPSN(wire.PSN(i / 8))
		c.Remotes[0].Frames = append(c.Remotes[0].Frames, f)
	}
	if per := float64(len(c.Encode(nil))-base) / n; per >= 24 {
		t.Errorf("%.1f bytes a frame, want less than 24", per)
	} else {
		t.Logf("%.1f bytes a frame", per)
	}
}

func TestHashSeesEveryByte(t *testing.T) {
	b := randomContent(3).Encode(nil)
	h := HashOf(b)
	for i := range b {
		b[i] ^= 0x10
		if HashOf(b) == h {
			t.Fatalf("byte %d does not matter", i)
		}
		b[i] ^= 0x10
	}
	if HashOf(append(b, 0)) == h {
		t.Error("a trailing zero does not matter")
	}
}

func FuzzDecode(f *testing.F) {
	for s := range uint64(5) {
		f.Add(randomContent(s).Encode(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Decode(c.Encode(nil))
		if err != nil || !reflect.DeepEqual(c, again) {
			t.Fatalf("accepted content does not come back: %v", err)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	c := randomContent(7)
	n := 0
	for _, r := range c.Remotes {
		n += len(r.Frames) + len(r.Late)
	}
	var buf []byte
	for b.Loop() {
		buf = c.Encode(buf[:0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(max(n, 1)), "ns/frame")
}
