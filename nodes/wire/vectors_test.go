package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
)

// vector is one line of testdata/vectors.txt.
type vector struct {
	name string
	icrc []byte // as on the wire
	b    []byte // frame without FCS
}

func vectors(tb testing.TB) map[string]vector {
	tb.Helper()
	f, err := os.Open("testdata/vectors.txt")
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	out := map[string]vector{}
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		w := strings.Fields(sc.Text())
		if len(w) != 3 || w[0] == "#" {
			continue
		}
		out[w[0]] = vector{w[0], unhex(tb, w[1]), unhex(tb, w[2])}
	}
	if len(out) != 21 {
		tb.Fatalf("%d vectors, want 21", len(out))
	}
	return out
}

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// wantHeader is what a vector's description says.
type wantHeader struct {
	op      Opcode
	net     Net
	qpn     uint32
	psn     PSN
	pad     uint8
	se, ack bool
	payload string // hex
	check   func(p *Packet) bool
}

var gid = netip.MustParseAddr("::ffff:15.0.0.2")

var wantVectors = map[string]wantHeader{
	"H1": {op: CNP, net: NetIPv4, qpn: 0x118, check: func(p *Packet) bool {
		return p.BTH.BECN && !p.BTH.FECN && p.IPv4.TOS == 0xc2 && p.UDP.SrcPort == 0 && p.CNP == [16]byte{} && p.IPv4.ID == 0x718c
	}},
	"H2": {op: WriteOnly, net: NetGRH, qpn: 0x10a, psn: 0xa788bc, pad: 3, ack: true, payload: "0000000001", check: func(p *Packet) bool {
		return p.RETH == RETHFields{0x55d4c0726000, 0x47b3, 5} && p.IPv6.Src == gid && p.IPv6.Class == 2 && p.IPv6.Next == ProtoIBA && p.IPv6.HopLimit == 64 && p.BTH.M
	}},
	"H3": {op: Acknowledge, net: NetGRH, qpn: 0x109, psn: 0xa788c0, check: func(p *Packet) bool {
		return p.AETH == AETHFields{0, 5} && p.IPv6.PayloadLen == 0x14
	}},
	"H4": {op: UCSendOnly, net: NetIPv4, qpn: 211, psn: 13571856, pad: 2, payload: "4630818be28935d90e9a95505401be885e50", check: func(p *Packet) bool {
		return p.IPv4.Checksum == 0xb4d5 && p.IPv4.TOS == 1 && p.IPv4.ID == 1144 && p.UDP.SrcPort == 49152 && p.UDP.Checksum == 0xaca2
	}},
	"H5": {op: UCSendOnly, net: NetIPv6, qpn: 211, psn: 13571856, pad: 2, payload: "4630818be28935d90e9a95505401be885e50", check: func(p *Packet) bool {
		return p.IPv6.Class == 226 && p.IPv6.Flow == 0x1face && p.IPv6.HopLimit == 255 && p.IPv6.Src == netip.MustParseAddr("2022::1023") && p.IPv6.Dst == netip.MustParseAddr("2023::1024")
	}},
	"V01": {op: SendOnly, net: NetIPv4, qpn: 0x222, psn: 0x10, pad: 3, se: true, ack: true, payload: "68656c6c6f"},
	"V02": {op: SendOnly, net: NetIPv4, qpn: 0x222, psn: 0x11, ack: true},
	"V03": {op: SendOnlyImm, net: NetIPv4, qpn: 0x222, psn: 0x12, ack: true, payload: "01020304", check: func(p *Packet) bool { return p.Imm == 0xcafebabe }},
	"V04": {op: SendOnlyInv, net: NetIPv4, qpn: 0x222, psn: 0x13, check: func(p *Packet) bool { return p.IETH == 0x1234 }},
	"V05": {op: WriteOnly, net: NetIPv4, qpn: 0x222, psn: 0x14, payload: "0001020304050607", check: func(p *Packet) bool { return p.RETH == RETHFields{0x1000, 0x1234, 8} }},
	"V06": {op: ReadRequest, net: NetIPv4, qpn: 0x222, psn: 0xfffffe, ack: true, check: func(p *Packet) bool { return p.RETH == RETHFields{0x2000, 0x1234, 3000} }},
	"V07": {op: ReadRespOnly, net: NetIPv4, qpn: 0x111, psn: 0x15, payload: "deadbeef", check: func(p *Packet) bool { return p.AETH == AETHFields{0x1f, 7} }},
	"V08": {op: Acknowledge, net: NetIPv4, qpn: 0x111, psn: 0x14, check: func(p *Packet) bool { return p.AETH == AETHFields{0x1f, 7} }},
	"V09": {op: Acknowledge, net: NetIPv4, qpn: 0x111, psn: 0x15, check: func(p *Packet) bool { return p.AETH == AETHFields{SynNAKSequence, 7} }},
	"V10": {op: Acknowledge, net: NetIPv4, qpn: 0x111, psn: 0x15, check: func(p *Packet) bool { return p.AETH == AETHFields{SynRNR | 12, 7} }},
	"V11": {op: CompareSwap, net: NetIPv4, qpn: 0x222, psn: 0x16, check: func(p *Packet) bool { return p.Atomic == AtomicFields{0x3000, 0x1234, 2, 1} }},
	"V12": {op: FetchAdd, net: NetIPv4, qpn: 0x222, psn: 0x17, check: func(p *Packet) bool { return p.Atomic == AtomicFields{0x3008, 0x1234, 5, 0} }},
	"V13": {op: AtomicAck, net: NetIPv4, qpn: 0x111, psn: 0x16, check: func(p *Packet) bool { return p.AETH == AETHFields{0x1f, 8} && p.Orig == 1 }},
	"V14": {op: CNP, net: NetIPv4, qpn: 0x111, check: func(p *Packet) bool { return p.BTH.BECN && p.IPv4.TOS == 0xc2 }},
	"V15": {op: Acknowledge, net: NetIPv4, qpn: 0x111, psn: 0x14, check: func(p *Packet) bool { return p.IPv4.TOS&3 == CE && p.IPv4.TTL == 63 }},
	"V16": {op: Acknowledge, net: NetIPv6, qpn: 0x111, psn: 0x14, check: func(p *Packet) bool { return p.IPv6.Class == 2 && p.AETH.MSN == 7 }},
}

// TestVectors decodes every vector, checks its fields and its ICRC, and writes
// it back, as it was and with all computed fields computed anew.
func TestVectors(t *testing.T) {
	all := vectors(t)
	for name, w := range wantVectors {
		v, ok := all[name]
		if !ok {
			t.Errorf("%s: not in testdata", name)
			continue
		}
		p, err := Decode(v.b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		checkHeader(t, name, &p, w)
		checkBytes(t, v, &p)
	}
}

func checkHeader(t *testing.T, name string, p *Packet, w wantHeader) {
	t.Helper()
	if !p.IsRoCE || p.Net != w.net || p.IsUDP != (w.net != NetGRH) {
		t.Errorf("%s: RoCE %v over net %d, UDP %v", name, p.IsRoCE, p.Net, p.IsUDP)
	}
	h := p.BTH
	if h.Op != w.op || h.DstQPN != w.qpn || h.PSN != w.psn || h.PadCnt != w.pad || h.PKey != DefaultPKey || h.TVer != 0 {
		t.Errorf("%s: BTH %+v, want %+v", name, h, w)
	}
	if h.SE != w.se || (h.AckReq != w.ack && name[0] == 'H') {
		t.Errorf("%s: SE %v A %v", name, h.SE, h.AckReq)
	}
	if got := hex.EncodeToString(p.Payload); got != w.payload {
		t.Errorf("%s: payload %s, want %s", name, got, w.payload)
	}
	if w.check != nil && !w.check(p) {
		t.Errorf("%s: headers do not hold: %+v", name, p)
	}
}

func checkBytes(t *testing.T, v vector, p *Packet) {
	t.Helper()
	if got := binary.LittleEndian.AppendUint32(nil, p.ICRC); !bytes.Equal(got, v.icrc) || !p.ICRCOK() {
		t.Errorf("%s: ICRC %x ok %v, want %x", v.name, got, p.ICRCOK(), v.icrc)
	}
	if got := p.Append(nil); !bytes.Equal(got, v.b) {
		t.Errorf("%s: written back\n%x, want\n%x", v.name, got, v.b)
	}
	q := *p
	q.ICRC, q.UDP.Len, q.IPv4.TotalLen, q.IPv4.Checksum, q.IPv6.PayloadLen, q.BTH.PadCnt = 0, 0, 0, 0, 0, 0
	q.Seal()
	want := append(bytes.Clone(v.b), make([]byte, max(0, 60-len(v.b)))...)
	if got := q.Append(nil); !bytes.Equal(got, want) {
		t.Errorf("%s: sealed\n%x, want\n%x", v.name, got, want)
	}
	for bit := range 8 { // every covered byte matters: one flipped bit fails the check
		b := bytes.Clone(v.b)
		b[len(b)-5] ^= 1 << bit
		if d, err := Decode(b); err == nil && d.IsRoCE && d.ICRCOK() {
			t.Errorf("%s: bit %d flipped, ICRC still right", v.name, bit)
		}
	}
}

// TestCEAndTTLKeepICRC is V15: marking and routing rewrite V08's header in
// place, the bytes become V15, and the ICRC is that of V08.
func TestCEAndTTLKeepICRC(t *testing.T) {
	all := vectors(t)
	b := bytes.Clone(all["V08"].b)
	ip := IPv4(b[EthHeader : EthHeader+IPv4Header])
	ip.SetTOS(ip.TOS() | CE)
	ip.SetTTL(ip.TTL() - 1)
	if !ip.Valid() {
		t.Error("checksum not refreshed")
	}
	if !bytes.Equal(all["V08"].icrc, all["V15"].icrc) {
		t.Error("V08 and V15 differ in ICRC")
	}
	// V15 has the same identification as V08, so that the frames are equal.
	if !bytes.Equal(b, all["V15"].b) {
		t.Errorf("rewritten\n%x, want\n%x", b, all["V15"].b)
	}
}

// TestVectorsAsFrames builds the vectors without payload from frame values.
func TestVectorsAsFrames(t *testing.T) {
	all := vectors(t)
	req := func(op Opcode, psn PSN, id uint16, set func(*Frame)) (Frame, FrameContext) {
		return frameOf(op, 1, 2, 0x222, psn, set), FrameContext{SrcMAC: RNICMAC(1), DstMAC: RNICMAC(2), IPID: id}
	}
	resp := func(op Opcode, psn PSN, id uint16, set func(*Frame)) (Frame, FrameContext) {
		return frameOf(op, 2, 1, 0x111, psn, set), FrameContext{SrcMAC: RNICMAC(2), DstMAC: RNICMAC(1), IPID: id}
	}
	ack := func(syn uint8, msn uint32) func(*Frame) { return func(f *Frame) { f.SetAETH(syn, msn) } }
	type maker func() (Frame, FrameContext)
	cases := map[string]maker{
		"V02": func() (Frame, FrameContext) { return req(SendOnly, 0x11, 2, func(f *Frame) { f.Set(FlagAckReq) }) },
		"V04": func() (Frame, FrameContext) {
			return req(SendOnlyInv, 0x13, 4, func(f *Frame) { f.D = 0x1234; f.Set(FlagAckReq) })
		},
		"V06": func() (Frame, FrameContext) {
			return req(ReadRequest, 0xfffffe, 6, func(f *Frame) { f.A, f.B = 0x2000, 0x1234<<32|3000; f.Set(FlagAckReq) })
		},
		"V08": func() (Frame, FrameContext) { return resp(Acknowledge, 0x14, 8, ack(0x1f, 7)) },
		"V09": func() (Frame, FrameContext) { return resp(Acknowledge, 0x15, 9, ack(SynNAKSequence, 7)) },
		"V10": func() (Frame, FrameContext) { return resp(Acknowledge, 0x15, 10, ack(SynRNR|12, 7)) },
		"V11": func() (Frame, FrameContext) {
			return req(CompareSwap, 0x16, 11, func(f *Frame) { f.A, f.B, f.C, f.D = 0x3000, 2, 1, 0x1234; f.Set(FlagAckReq) })
		},
		"V12": func() (Frame, FrameContext) {
			return req(FetchAdd, 0x17, 12, func(f *Frame) { f.A, f.B, f.D = 0x3008, 5, 0x1234; f.Set(FlagAckReq) })
		},
		"V13": func() (Frame, FrameContext) {
			return resp(AtomicAck, 0x16, 13, func(f *Frame) { f.B = 1; f.SetAETH(0x1f, 8) })
		},
		"V14": func() (Frame, FrameContext) {
			return resp(CNP, 0, 14, func(f *Frame) { f.Clear(FlagM); f.Set(FlagBECN); f.TOS = 0xc2 })
		},
		"V15": func() (Frame, FrameContext) {
			return resp(Acknowledge, 0x14, 8, func(f *Frame) { f.SetAETH(0x1f, 7); f.TOS |= CE; f.TTL-- })
		},
	}
	for name, mk := range cases {
		f, ctx := mk()
		p, err := DecodeFCS(AppendFrame(nil, &f, ctx))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p.Trailer, p.HasFCS = nil, false
		want := all[name].b
		if got := p.Append(nil); !bytes.Equal(got, want) {
			t.Errorf("%s:\n%x, want\n%x", name, got, want)
		}
		if int(f.Len) != max(len(want), 60)+FCSSize {
			t.Errorf("%s: Len %d for %d bytes", name, f.Len, len(want))
		}
	}
}

// frameOf is a RoCE frame without payload as the vectors have it.
func frameOf(op Opcode, src, dst, qpn uint32, psn PSN, set func(*Frame)) Frame {
	f := Frame{Src: src, Dst: dst, SPort: 0xc000, Kind: KindOf(op), TOS: ECT0, TTL: 64, Len: uint16(RoCELen(op, 0))}
	f.SetOp(op, qpn)
	f.SetPSN(psn)
	f.Set(FlagM)
	set(&f)
	return f
}

// sharedDir is where the project's read-only inputs are; "" when absent.
func sharedDir() string {
	for _, d := range []string{os.Getenv("ROCEMU_SHARED"), "../../../shared"} {
		if _, err := os.Stat(filepath.Join(d, "files")); d != "" && err == nil {
			return d
		}
	}
	return ""
}

// TestGoldenPcap decodes the four golden frames; the file's MACs and order are
// those of vectors H1, H4, H2, H3.
func TestGoldenPcap(t *testing.T) {
	dir := sharedDir()
	if dir == "" {
		t.Skip("shared inputs are absent")
	}
	f, err := os.Open(filepath.Join(dir, "files", "roce_golden_4frames.pcap"))
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"82fd002a", "78f353f3", "e3d856bb", "25f0c038"} {
		b, _, err := r.ReadPacketData()
		if err != nil {
			t.Fatal(err)
		}
		p, err := Decode(b)
		if err != nil {
			t.Fatalf("frame %d: %v", i+1, err)
		}
		got := hex.EncodeToString(binary.LittleEndian.AppendUint32(nil, p.ICRC))
		if got != want || !p.ICRCOK() || !bytes.Equal(p.Append(nil), b) {
			t.Errorf("frame %d: ICRC %s ok %v, want %s", i+1, got, p.ICRCOK(), want)
		}
	}
	if _, _, err := r.ReadPacketData(); err == nil {
		t.Error("more than four frames")
	}
}
