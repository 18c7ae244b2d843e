package wire

import (
	"testing"

	"pgregory.net/rapid"
)

// TestPSNCircle: distances wrap at 2^24, halfway counts as behind (transport §2.1).
func TestPSNCircle(t *testing.T) {
	for _, c := range []struct {
		p, q PSN
		diff int32
	}{
		{0, 0, 0},
		{1, 0, 1},
		{0, 1, -1},
		{0, 0xffffff, 1},
		{0xffffff, 0, -1},
		{0x7fffff, 0, MaxOutstanding},
		{0x800000, 0, -1 << 23},
		{5, 0x800005, -1 << 23},
	} {
		if d := c.p.Diff(c.q); d != c.diff || c.p.Before(c.q) != (c.diff < 0) {
			t.Errorf("%x - %x = %d, want %d", c.p, c.q, d, c.diff)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		p := PSN(rapid.Uint32Range(0, PSNMask).Draw(t, "p"))
		n := rapid.IntRange(-1<<23, MaxOutstanding).Draw(t, "n")
		if d := p.Add(n).Diff(p); int(d) != n {
			t.Fatalf("%x + %d is %d away", p, n, d)
		}
	})
}

// TestOpcodeDirections: every RC opcode is a request or a response, not both.
func TestOpcodeDirections(t *testing.T) {
	for op := SendFirst; op <= AtomicWrite; op++ {
		if op.IsRequest() == op.IsResponse() {
			t.Errorf("%v: request %v, response %v", op, op.IsRequest(), op.IsResponse())
		}
		if op.IsReadResponse() && !op.IsResponse() {
			t.Errorf("%v: READ response but no response", op)
		}
	}
	if CNP.IsRequest() || CNP.IsResponse() || UCSendOnly.IsRequest() {
		t.Error("CNP and UC are neither")
	}
}

// TestFrameFields: setters of shared words leave their neighbours alone.
func TestFrameFields(t *testing.T) {
	var f Frame
	f.SetOp(ReadRespLast, 0xffffff)
	f.SetPSN(0xabcdef)
	f.Set(FlagAckReq | FlagFECN)
	f.SetOp(Acknowledge, 0x123456)
	f.SetPSN(1)
	f.Clear(FlagFECN)
	if f.Op() != Acknowledge || f.DstQPN() != 0x123456 || f.PSN() != 1 || f.Flags() != FlagAckReq {
		t.Errorf("%v", &f)
	}
	f.SetAETH(SynNAKSequence, 0xffffff)
	f.TOS = 26<<2 | CE
	if f.Syndrome() != SynNAKSequence || f.MSN() != 0xffffff || f.DSCP() != 26 || f.ECN() != CE {
		t.Errorf("%+v", f)
	}
	for op, want := range map[Opcode]int{SendOnly: 64, Acknowledge: 66, CNP: 78, AtomicAck: 74, WriteOnly: 78, CompareSwap: 90, WriteMiddle: 64} {
		if n := RoCELen(op, 0); n != want {
			t.Errorf("%v: %d bytes, want %d", op, n, want)
		}
	}
	if n := RoCELen(WriteMiddle, 1024); n != 1086 {
		t.Errorf("write-middle of 1024: %d", n)
	}
}
