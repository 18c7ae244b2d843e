package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"pgregory.net/rapid"
)

// knownOps are all opcodes of the table.
func knownOps() []Opcode {
	var out []Opcode
	for i := range 256 {
		if Opcode(i).Known() {
			out = append(out, Opcode(i))
		}
	}
	return out
}

// drawFrame draws a frame of any kind whose unused fields are zero, and what
// travels beside its bytes.
func drawFrame(t *rapid.T) (f, beside Frame) {
	beside.At = clock.Time(rapid.Int64Min(0).Draw(t, "at"))
	beside.Index, beside.Iter = rapid.Uint32().Draw(t, "index"), rapid.Uint8().Draw(t, "iter")
	f = beside
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		f.Kind, f.Len = KindPFC, PFCFrame
		f.A, f.B, f.D = rapid.Uint64().Draw(t, "A"), rapid.Uint64().Draw(t, "B"), uint32(rapid.Uint16().Draw(t, "D"))
	case 1:
		f.Kind, f.Len, f.A = KindPause, MinFrame, uint64(rapid.Uint16().Draw(t, "A"))
		if rapid.Bool().Draw(t, "badtype") {
			f.Set(DamagedType)
		}
	case 2:
		drawAddresses(t, &f)
		drawFlow(t, &f, &beside)
	default:
		drawAddresses(t, &f)
		drawRoCE(t, &f, &beside)
	}
	if rapid.Bool().Draw(t, "badfcs") {
		f.Set(FlagBadFCS)
	}
	return f, beside
}

func drawAddresses(t *rapid.T, f *Frame) {
	f.Src, f.Dst = rapid.Uint32().Draw(t, "src"), rapid.Uint32().Draw(t, "dst")
	f.SPort, f.TOS, f.TTL = rapid.Uint16().Draw(t, "sport"), rapid.Uint8().Draw(t, "tos"), rapid.Uint8().Draw(t, "ttl")
	if rapid.Bool().Draw(t, "badhdr") {
		f.Set(FlagBadHdr)
	}
}

// drawFlow draws UDP, TCP and other frames; below 100 bytes their words do not
// fit everywhere and travel beside.
func drawFlow(t *rapid.T, f, beside *Frame) {
	f.Kind = rapid.SampledFrom([]Kind{KindUDP, KindTCP, KindOther}).Draw(t, "flow")
	f.Len = uint16(rapid.IntRange(64, 9232).Draw(t, "len"))
	f.A, f.B, f.C = rapid.Uint64().Draw(t, "A"), rapid.Uint64().Draw(t, "B"), rapid.Uint64().Draw(t, "C")
	f.D = rapid.Uint32().Draw(t, "D")
	f.SetOp(Opcode(rapid.Uint8().Draw(t, "op")), rapid.Uint32().Draw(t, "qpn"))
	f.SetPSN(PSN(rapid.Uint32().Draw(t, "psn")))
	if f.Len < 130 {
		beside.A, beside.B, beside.C, beside.D, beside.qpn, beside.psn = f.A, f.B, f.C, f.D, f.qpn, f.psn
	}
	if rapid.Bool().Draw(t, "badtype") {
		f.Set(DamagedType)
	}
	if f.Kind == KindTCP { // sequence numbers are always in the bytes
		beside.A, beside.B = beside.A&^0xffffffff, beside.B&^0xffffffff
	}
}

func drawRoCE(t *rapid.T, f, beside *Frame) {
	op := rapid.OneOf(rapid.SampledFrom(knownOps()), rapid.Just(Opcode(0x15))).Draw(t, "op")
	f.Kind = KindOf(op)
	f.SetOp(op, rapid.Uint32().Draw(t, "qpn"))
	f.SetPSN(PSN(rapid.Uint32().Draw(t, "psn")))
	f.Set(Flags(rapid.Uint8().Draw(t, "flags")) &^ (FlagBadFCS | FlagBadHdr))
	n := 0
	if op.HasPayload() {
		n = rapid.SampledFrom([]int{0, 1, 3, 4, 7, 8, 9, 255, 1023, 1024, 4096}).Draw(t, "payload")
	}
	if op == WriteFirst || op == UCWriteFirst {
		n &^= 3
	}
	f.Len = uint16(RoCELen(op, n))
	f.SetPad(n)
	drawExt(t, f, n)
	if n > 0 {
		f.C = rapid.Uint64().Draw(t, "tag")
	}
	if n < 8 && op.HasPayload() {
		beside.C = f.C
	}
	if op.Ext()&ExtAETH != 0 {
		f.A = rapid.Uint64().Draw(t, "arrival")
		beside.A = f.A
	}
}

func drawExt(t *rapid.T, f *Frame, n int) {
	ext := f.Op().Ext()
	if ext&ExtRETH != 0 {
		f.A = rapid.Uint64().Draw(t, "va")
		f.B = uint64(rapid.Uint32().Draw(t, "rkey"))<<32 | uint64(uint32(n))
		if !f.Op().HasPayload() || f.Op() == WriteFirst || f.Op() == UCWriteFirst {
			f.B |= uint64(rapid.Uint32().Draw(t, "dmalen"))
		}
	}
	if ext&ExtAtomic != 0 {
		f.A, f.B, f.C = rapid.Uint64().Draw(t, "va"), rapid.Uint64().Draw(t, "swap"), rapid.Uint64().Draw(t, "compare")
	}
	if ext&ExtAtomicAck != 0 {
		f.B = rapid.Uint64().Draw(t, "orig")
	}
	if ext&(ExtFETH|ExtAtomic|ExtAETH|ExtImm|ExtIETH) != 0 {
		f.D = rapid.Uint32().Draw(t, "D")
	}
}

// TestFrameRoundTrip is value → bytes → value for every kind of frame; the
// damage a fault did is really wrong in the bytes, and nothing else is.
func TestFrameRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, beside := drawFrame(t)
		ctx := FrameContext{SrcMAC: PortMAC(3, 7), DstMAC: RNICMAC(9), IPID: rapid.Uint16().Draw(t, "ipid"), Beside: &beside}
		b := AppendFrame([]byte{0xaa}, &f, ctx)
		if b[0] != 0xaa {
			t.Fatal("prefix overwritten")
		}
		b = b[1:]
		if len(b) != int(f.Len) {
			t.Fatalf("%d bytes, Len %d", len(b), f.Len)
		}
		g, err := DecodeFrame(b, ctx)
		if err != nil || g != f {
			t.Fatalf("%v\ngot  %+v %v\nwant %+v %v\n%x", err, g, &g, f, &f, b)
		}
		checkDamage(t, &f, b)
	})
}

func checkDamage(t *rapid.T, f *Frame, b []byte) {
	if CheckFCS(b) == f.Has(FlagBadFCS) {
		t.Fatalf("FCS right: %v, flags %02x", CheckFCS(b), f.Flags())
	}
	p, err := DecodeFCS(b)
	if err != nil {
		t.Fatal(err)
	}
	if p.IsRoCE && p.ICRCOK() == f.Has(FlagBadICRC) {
		t.Fatalf("ICRC right: %v, flags %02x", p.ICRCOK(), f.Flags())
	}
	if p.Net == NetIPv4 && p.ipv4OK() == f.Has(FlagBadHdr) {
		t.Fatalf("IP checksum right: %v, flags %02x", p.ipv4OK(), f.Flags())
	}
	if known := p.Net != NetOther; known == f.Has(DamagedType) {
		t.Fatalf("type %04x, flags %02x", p.Eth.Type, f.Flags())
	}
	if p.IsRoCE && (!bytes.Equal(p.Payload, AppendFill(nil, f.C, f.PayloadLen())) || p.PadByte != [3]byte{}) {
		t.Fatalf("payload %x is not the fill of tag %x", p.Payload, f.C)
	}
	if !bytes.Equal(p.Append(nil), b) {
		t.Fatal("packet does not write back")
	}
}

// TestEveryOpcodeAsFrame walks all opcodes with all pads by table, so that no
// draw can miss one.
func TestEveryOpcodeAsFrame(t *testing.T) {
	for _, op := range append(knownOps(), 0x15) {
		for n := range 10 {
			if !op.HasPayload() && n > 0 || (op == WriteFirst || op == UCWriteFirst) && n&3 != 0 {
				continue
			}
			f := Frame{Kind: KindOf(op), Src: 1, Dst: 2, SPort: SPort(17, 18), TTL: 64, TOS: 26<<2 | ECT0, Len: uint16(RoCELen(op, n))}
			f.SetOp(op, 0x11)
			f.SetPad(n)
			if op.Ext()&ExtRETH != 0 {
				f.B = 7<<32 | uint64(n)
			}
			if op.Ext()&(ExtAETH|ExtImm|ExtIETH|ExtFETH|ExtAtomic) != 0 {
				f.D = 0xabcdef01
			}
			if n > 0 {
				f.C = 0x1122334455667788
			}
			if f.PayloadLen() != n || f.Pad() != -n&3 {
				t.Errorf("%v: payload %d pad %d, want %d %d", op, f.PayloadLen(), f.Pad(), n, -n&3)
			}
			b := AppendFrame(nil, &f, FrameContext{})
			g, err := DecodeFrame(b, FrameContext{Beside: &Frame{C: f.C}})
			if err != nil || g != f {
				t.Errorf("%v payload %d: %v\n%+v, want\n%+v", op, n, err, g, f)
			}
		}
	}
}

// TestSamePSNSameBytes: two transmissions of a packet differ in metadata only.
func TestSamePSNSameBytes(t *testing.T) {
	a := Frame{Src: 1, Dst: 2, TTL: 64, C: 99, Len: uint16(RoCELen(SendMiddle, 1024)), Iter: 1}
	a.SetOp(SendMiddle, 17)
	b := a
	b.At, b.Iter = 5000, 2
	x, y := AppendFrame(nil, &a, FrameContext{}), AppendFrame(nil, &b, FrameContext{})
	if !bytes.Equal(x, y) {
		t.Error("retransmission differs")
	}
	b.C++
	if bytes.Equal(x, AppendFrame(nil, &b, FrameContext{})) {
		t.Error("another tag, same bytes")
	}
	b = a
	b.TOS, b.TTL = CE, 61 // marking and routing leave the ICRC alone
	px, _ := DecodeFCS(x)
	pb, err := DecodeFCS(AppendFrame(nil, &b, FrameContext{SrcMAC: PortMAC(1, 1)}))
	if err != nil || px.ICRC != pb.ICRC || !pb.ICRCOK() || px.FCS == pb.FCS {
		t.Errorf("ICRC %08x and %08x, FCS %08x and %08x", px.ICRC, pb.ICRC, px.FCS, pb.FCS)
	}
}

// TestDamagedTypeAlone: with a damaged type everything behind it is as it was.
func TestDamagedTypeAlone(t *testing.T) {
	f := Frame{Src: 1, Dst: 2, TTL: 64, C: 99, Len: uint16(RoCELen(SendMiddle, 1024))}
	f.SetOp(SendMiddle, 17)
	good := AppendFrame(nil, &f, FrameContext{})
	f.Set(DamagedType)
	bad := AppendFrame(nil, &f, FrameContext{})
	if got := binary.BigEndian.Uint16(bad[12:]); got != 0x0900 {
		t.Errorf("type %04x", got)
	}
	if !bytes.Equal(bad[EthHeader:len(bad)-FCSSize], good[EthHeader:len(good)-FCSSize]) || !bytes.Equal(bad[:12], good[:12]) {
		t.Errorf("another byte differs\n%x\n%x", bad, good)
	}
	if !CheckFCS(bad) {
		t.Error("the FCS is not that of the damaged frame")
	}
	if g, err := DecodeFrame(bad, FrameContext{}); err != nil || g.Flags()&DamagedType != DamagedType || g.Dst != 2 {
		t.Errorf("%+v %v", g, err)
	}
}

func TestFill(t *testing.T) {
	const tag = 0x0102030405060708
	long := AppendFill(nil, tag, 4096)
	if len(long) != 4096 || binary.BigEndian.Uint64(long) != tag {
		t.Fatalf("%d bytes, begins %x", len(long), long[:8])
	}
	for n := range 64 { // every length is a prefix of the longer ones
		if got := AppendFill([]byte{1}, tag, n); !bytes.Equal(got[1:], long[:n]) || got[0] != 1 {
			t.Errorf("%d bytes: %x, want %x", n, got[1:], long[:n])
		}
	}
	// SplitMix64 from seed 0: the published first outputs.
	zero := AppendFill(nil, 0, 24)
	if a, b := binary.BigEndian.Uint64(zero[8:]), binary.BigEndian.Uint64(zero[16:]); a != 0xe220a8397b1dcdaf || b != 0x6e789e6aa1b965f4 {
		t.Errorf("stream %x %x", a, b)
	}
	seen := map[[8]byte]bool{}
	for i := 8; i+8 <= len(long); i += 8 {
		seen[[8]byte(long[i:i+8])] = true
	}
	if len(seen) != 511 {
		t.Errorf("%d different words of 511", len(seen))
	}
	if got := AppendFill(nil, tag, -1); len(got) != 0 {
		t.Errorf("negative length: %x", got)
	}
}

// TestTCPSegment checks header, lengths and checksum of a segment of a flow.
func TestTCPSegment(t *testing.T) {
	for _, l := range []uint16{64, 65, 200, 1518} {
		f := Frame{Kind: KindTCP, Src: 1, Dst: 2, SPort: 40000, TTL: 60, A: 7, B: 9, Len: l}
		b := AppendFrame(nil, &f, FrameContext{})
		p, err := DecodeFCS(b)
		if err != nil || p.IPv4.Proto != ProtoTCP || !p.ipv4OK() {
			t.Fatalf("%d: %+v %v", l, p.IPv4, err)
		}
		seg := p.Payload
		if want := int(l) - 38; l == 64 && len(seg) != TCPHeader || l > 64 && len(seg) != want {
			t.Errorf("%d: segment of %d bytes", l, len(seg))
		}
		pseudo := binary.BigEndian.AppendUint32(nil, p.IPv4.Src)
		pseudo = binary.BigEndian.AppendUint32(pseudo, p.IPv4.Dst)
		pseudo = append(pseudo, 0, ProtoTCP, byte(len(seg)>>8), byte(len(seg)))
		if s := onesSum(0, append(pseudo, seg...)); s != 0xffff {
			t.Errorf("%d: checksum sums to %04x", l, s)
		}
		if binary.BigEndian.Uint32(seg[4:]) != 7 || binary.BigEndian.Uint32(seg[8:]) != 9 || seg[12] != 0x50 {
			t.Errorf("%d: header %x", l, seg[:20])
		}
	}
}

// TestUndecodable: errors carry the layer, the frame is other and flagged.
func TestUndecodable(t *testing.T) {
	all := vectors(t)
	fcs := func(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, FCS(b)) }
	cut := func(name string, n int) []byte {
		b := bytes.Clone(all[name].b)[:n]
		return fcs(b)
	}
	beside := Frame{At: 7, Index: 3}
	for _, c := range []struct {
		name  string
		b     []byte
		cause error
	}{
		{"empty", nil, ErrShort},
		{"half an Ethernet header", make([]byte, 12), ErrShort},
		{"cut in IPv4", cut("V08", 30), ErrShort},
		{"cut behind IPv4", cut("V08", 40), ErrLength},
		{"longer than a length field", make([]byte, 70000), ErrLength},
	} {
		f, err := DecodeFrame(c.b, FrameContext{Beside: &beside})
		if !errors.Is(err, c.cause) {
			t.Errorf("%s: %v, want %v", c.name, err, c.cause)
		}
		if f.Kind != KindOther || f.At != 7 || f.Index != 3 || int(f.Len) != min(len(c.b), 65535) {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
	for _, name := range []string{"V16", "H2", "H3", "H5"} { // IPv6 and RoCEv1 are in the codec only
		f, err := DecodeFrame(fcs(bytes.Clone(all[name].b)), FrameContext{})
		if err != nil || f.Kind != KindOther || f.Flags() != 0 {
			t.Errorf("%s: %+v %v", name, f, err)
		}
	}
}

// TestForeignFrames decodes vectors built elsewhere into values.
func TestForeignFrames(t *testing.T) {
	all := vectors(t)
	dec := func(name string) Frame {
		b := bytes.Clone(all[name].b)
		b = append(b, make([]byte, max(0, 60-len(b)))...)
		f, err := DecodeFrame(binary.LittleEndian.AppendUint32(b, FCS(b)), FrameContext{})
		if err != nil || f.Flags()&damage != 0 {
			t.Errorf("%s: %v flags %02x", name, err, f.Flags())
		}
		return f
	}
	if f := dec("V01"); f.PayloadLen() != 5 || f.Pad() != 3 || !f.Has(FlagSE|FlagAckReq|FlagM) || f.Src != 1 || f.Dst != 2 || f.Len != 70 {
		t.Errorf("V01: %+v", f)
	}
	if f := dec("V02"); f.PayloadLen() != 0 || f.Payload(0) != 0 || f.Len != 64 {
		t.Errorf("V02: %+v", f)
	}
	if f := dec("V05"); f.PayloadLen() != 8 || f.A != 0x1000 || f.B != 0x1234<<32|8 || f.C != 0x0001020304050607 {
		t.Errorf("V05: %+v", f)
	}
	if f := dec("V10"); f.Kind != KindAck || f.Syndrome() != 0x2c || f.MSN() != 7 || f.PSN() != 0x15 {
		t.Errorf("V10: %+v", f)
	}
	if f := dec("H1"); f.Kind != KindCNP || !f.Has(FlagBECN) || f.Len != CNPFrame || f.DstQPN() != 0x118 || f.Src != 0x1101 {
		t.Errorf("H1: %+v", f)
	}
}

// TestLenTooSmall: a Len below the headers is a bug and says so.
func TestLenTooSmall(t *testing.T) {
	for _, f := range []Frame{{Kind: KindData, Len: 40}, {Kind: KindUDP, Len: 30}, {Kind: KindOther, Len: 63}, {Kind: KindPFC, Len: 65}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v: no panic", &f)
				}
			}()
			AppendFrame(nil, &f, FrameContext{})
		}()
	}
}

func TestFrameString(t *testing.T) {
	ack := frameOf(Acknowledge, 2, 1, 0x111, 20, func(f *Frame) {})
	pfc := Frame{Kind: KindPFC, D: 8}
	for _, c := range []struct {
		f    Frame
		want string
	}{
		{ack, "acknowledge 2>1 qpn 0x111 psn 20 len 66 tos 0x02 flags 04"},
		{pfc, "pfc vector 08 times 00000000000000000000000000000000"},
		{Frame{Kind: KindPause, A: 5}, "pause 5 quanta"},
		{Frame{Kind: KindUDP, Src: 1, Dst: 2, SPort: 9, Len: 64}, "kind 3 1>2 sport 9 len 64"},
	} {
		if got := c.f.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestNoAllocs: encoding into a buffer with room does not allocate.
func TestNoAllocs(t *testing.T) {
	buf := make([]byte, 0, 9300)
	for _, f := range benchFrames() {
		if n := testing.AllocsPerRun(100, func() { AppendFrame(buf, &f, FrameContext{IPID: 1}) }); n != 0 {
			t.Errorf("%v: %v allocations", &f, n)
		}
	}
}

func benchFrames() map[string]Frame {
	data := Frame{Src: 1, Dst: 2, SPort: 0xc001, TTL: 64, C: 7, Len: uint16(RoCELen(WriteMiddle, 1024))}
	data.SetOp(WriteMiddle, 17)
	return map[string]Frame{
		"data1024": data,
		"ack":      frameOf(Acknowledge, 1, 2, 17, 5, func(f *Frame) {}),
		"cnp":      frameOf(CNP, 1, 2, 17, 0, func(f *Frame) {}),
		"pfc":      {Kind: KindPFC, Len: PFCFrame, D: 8},
		"tcp1500":  {Kind: KindTCP, Src: 1, Dst: 2, Len: 1518},
	}
}

func BenchmarkAppendFrame(b *testing.B) {
	for name, f := range benchFrames() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(f.Len))
			buf := make([]byte, 0, 9300)
			for b.Loop() {
				buf = AppendFrame(buf[:0], &f, FrameContext{})
			}
		})
	}
}

func BenchmarkDecodeFrame(b *testing.B) {
	for name, f := range benchFrames() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			raw := AppendFrame(nil, &f, FrameContext{})
			for b.Loop() {
				if _, err := DecodeFrame(raw, FrameContext{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
