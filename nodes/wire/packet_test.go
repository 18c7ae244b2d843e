package wire

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestOpcodeNames: the words of faults and captures, both ways (interface, `match`).
func TestOpcodeNames(t *testing.T) {
	for op, name := range map[Opcode]string{
		0x00: "send-first", 0x01: "send-middle", 0x02: "send-last", 0x03: "send-last-imm", 0x04: "send-only",
		0x05: "send-only-imm", 0x06: "write-first", 0x07: "write-middle", 0x08: "write-last", 0x09: "write-last-imm",
		0x0a: "write-only", 0x0b: "write-only-imm", 0x0c: "read-request", 0x0d: "read-response-first",
		0x0e: "read-response-middle", 0x0f: "read-response-last", 0x10: "read-response-only", 0x11: "acknowledge",
		0x12: "atomic-acknowledge", 0x13: "compare-swap", 0x14: "fetch-add", 0x16: "send-last-inv",
		0x17: "send-only-inv", 0x1c: "flush", 0x1d: "atomic-write", 0x81: "cnp", 0x24: "uc-send-only", 0x2b: "uc-write-only-imm",
	} {
		if op.String() != name {
			t.Errorf("%02x: %s, want %s", uint8(op), op, name)
		}
		if got, err := ParseOpcode(name); err != nil || got != op {
			t.Errorf("%s: %02x %v", name, uint8(got), err)
		}
	}
	for i := range 256 {
		if got, err := ParseOpcode(Opcode(i).String()); err != nil || got != Opcode(i) {
			t.Errorf("%v: %v %v", Opcode(i), got, err)
		}
	}
	for _, bad := range []string{"", "WRITE_FIRST", "Write-First", "write_first", "0x100", "0x", "17"} {
		if _, err := ParseOpcode(bad); err == nil || !strings.Contains(err.Error(), "write-first") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if n := len(OpcodeNames()); n != 38 {
		t.Errorf("%d names, want 26 of RC with CNP and 12 of UC", n)
	}
}

// TestOpcodeTables: length by opcode, headers by opcode and order agree.
func TestOpcodeTables(t *testing.T) {
	size := map[Ext]int{ExtFETH: 4, ExtRETH: 16, ExtAtomic: 28, ExtAETH: 4, ExtAtomicAck: 8, ExtImm: 4, ExtIETH: 4, ExtCNP: 16}
	for i := range 256 {
		op, n := Opcode(i), 0
		for e, s := range size {
			if op.Ext()&e != 0 {
				n += s
			}
		}
		if n != op.ExtLen() {
			t.Errorf("%v: headers of %d bytes, table says %d", op, n, op.ExtLen())
		}
	}
	for rc := Opcode(0); rc <= WriteOnlyImm; rc++ { // a UC opcode is its RC one plus 0x20
		if uc := rc + 0x20; uc.String() != "uc-"+rc.String() || uc.Ext() != rc.Ext() {
			t.Errorf("%v is not the UC form of %v", uc, rc)
		}
	}
	for op, k := range map[Opcode]Kind{CNP: KindCNP, Acknowledge: KindAck, AtomicAck: KindAck, ReadRespOnly: KindData, SendOnly: KindData} {
		if KindOf(op) != k {
			t.Errorf("%v: kind %d, want %d", op, KindOf(op), k)
		}
	}
}

// samplePacket is one packet of an opcode over a network layer, with every
// header field different from zero.
func samplePacket(op Opcode, net Net, vlans int, payload []byte) Packet {
	p := Packet{
		Eth: EthernetFields{Dst: RNICMAC(2), Src: RNICMAC(1)}, Net: net, NVLAN: vlans, IsRoCE: true, HasFCS: true,
		BTH:  BTHFields{Op: op, SE: true, M: true, PKey: 0x8001, FECN: true, BECN: true, DstQPN: 0xabcdef, AckReq: true, PSN: 0xfffffe, Resv6: 5, Resv7: 9},
		RETH: RETHFields{1, 2, 3}, Atomic: AtomicFields{4, 5, 6, 7}, AETH: AETHFields{8, 9}, Orig: 10, Imm: 11, IETH: 12, FETH: 13,
		Payload: payload,
	}
	p.CNP[3] = 14
	typ := uint16(TypeIPv4)
	switch net {
	case NetIPv6:
		typ = TypeIPv6
		p.IPv6 = IPv6Fields{Class: 2, Flow: 0xfffff, Next: ProtoUDP, HopLimit: 9, Src: netip.MustParseAddr("fe80::1"), Dst: netip.MustParseAddr("fe80::2")}
	case NetGRH:
		typ = TypeRoCEv1
		p.IPv6 = IPv6Fields{Next: ProtoIBA, Src: gid, Dst: gid}
	default:
		p.IPv4 = IPv4Fields{TOS: 0x6a, ID: 77, Frag: IPv4DF, TTL: 3, Proto: ProtoUDP, Src: 0x0a000001, Dst: 0x0a000002}
	}
	if p.IsUDP = net != NetGRH; p.IsUDP {
		p.UDP = UDPFields{SrcPort: 0xc123, DstPort: RoCEPort}
	}
	types := []uint16{TypeQinQ, TypeVLAN}[2-vlans:]
	types = append(types[:len(types):len(types)], typ)
	p.Eth.Type = types[0]
	for i := range vlans {
		p.VLANs[i] = VLANFields{PCP: 3, VID: uint16(100 + i), Type: types[i+1]}
	}
	return p
}

// clearUnused zeroes the headers that the opcode does not have.
func clearUnused(p *Packet) {
	ext := p.BTH.Op.Ext()
	if ext&ExtRETH == 0 {
		p.RETH = RETHFields{}
	}
	if ext&ExtAtomic == 0 {
		p.Atomic = AtomicFields{}
	}
	if ext&ExtAETH == 0 {
		p.AETH = AETHFields{}
	}
	if ext&ExtAtomicAck == 0 {
		p.Orig = 0
	}
	for e, w := range map[Ext]*uint32{ExtImm: &p.Imm, ExtIETH: &p.IETH, ExtFETH: &p.FETH} {
		if ext&e == 0 {
			*w = 0
		}
	}
	if ext&ExtCNP == 0 {
		p.CNP = [CNPReserved]byte{}
	}
}

// samePacket compares without regard to nil and empty slices.
func samePacket(a, b Packet) bool {
	eq := bytes.Equal(a.Payload, b.Payload) && bytes.Equal(a.Trailer, b.Trailer)
	fixed := func(p Packet) (EthernetFields, [2]VLANFields, [4]any, BTHFields, [8]any, [6]any) {
		return p.Eth, p.VLANs, [4]any{p.NVLAN, p.Net, string(p.IPv4.Append(nil)), p.IPv6}, p.BTH,
			[8]any{p.RETH, p.Atomic, p.AETH, p.Orig, p.Imm, p.IETH, p.FETH, p.CNP},
			[6]any{p.UDP, p.IsUDP, p.ICRC, p.FCS, p.PadByte, p.PFC}
	}
	a1, a2, a3, a4, a5, a6 := fixed(a)
	b1, b2, b3, b4, b5, b6 := fixed(b)
	return eq && a1 == b1 && a2 == b2 && a3 == b3 && a4 == b4 && a5 == b5 && a6 == b6 &&
		a.IsRoCE == b.IsRoCE && a.Quant == b.Quant && a.HasFCS == b.HasFCS
}

// TestEveryOpcodeEveryLayer builds, decodes and compares each opcode over
// IPv4, IPv6 and RoCEv1 with 0 to 2 VLAN tags and every pad, and cuts it at
// every byte: the decoder errs or finds a packet, it never panics.
func TestEveryOpcodeEveryLayer(t *testing.T) {
	for _, op := range append(knownOps(), 0x15) {
		for _, net := range []Net{NetIPv4, NetIPv6, NetGRH} {
			for n := range 6 {
				if n > 0 && !op.HasPayload() {
					continue
				}
				p := samplePacket(op, net, n%3, []byte{1, 2, 3, 4, 5}[:n])
				clearUnused(&p)
				p.Seal()
				b := p.Append(nil)
				q, err := DecodeFCS(b)
				if err != nil || !samePacket(p, q) || !q.ICRCOK() || !CheckFCS(b) || int(q.BTH.PadCnt) != -n&3 {
					t.Fatalf("%v net %d payload %d: %v\n%+v, want\n%+v", op, net, n, err, q, p)
				}
				cutEverywhere(t, b)
			}
		}
	}
}

func cutEverywhere(t *testing.T, b []byte) {
	t.Helper()
	for i := range b {
		p, err := Decode(b[:i:i])
		var e *Error
		switch {
		case err == nil:
			if got := p.Append(nil); !bytes.Equal(got, b[:i]) {
				t.Fatalf("cut at %d: %x written back as %x", i, b[:i], got)
			}
		case !errors.As(err, &e) || e.Off < 0 || e.Off > i || e.Layer == "":
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
}

// TestErrorOffsets: errors point at the header in the frame.
func TestErrorOffsets(t *testing.T) {
	v := vectors(t)
	// cut shortens V06 and repairs the IP and UDP lengths, so that the
	// InfiniBand headers are what ends early.
	cut := func(name string, n int) []byte {
		p, err := Decode(v[name].b)
		if err != nil {
			t.Fatal(err)
		}
		b := bytes.Clone(v[name].b)[:n]
		p.IPv4.TotalLen, p.UDP.Len = uint16(n-14), uint16(n-34)
		copy(b[14:], p.IPv4.Append(nil))
		copy(b[34:], p.UDP.Append(nil))
		return b
	}
	for _, c := range []struct {
		b     []byte
		layer string
		off   int
	}{
		{cut("V06", 45), "BTH", 42},
		{cut("V06", 60), "RETH", 54},
		{cut("V06", 72), "payload", 70},
		{cut("V11", 70), "AtomicETH", 54},
		{cut("V13", 56), "AETH", 54},
		{cut("V13", 60), "AtomicAckETH", 58},
		{cut("V14", 60), "CNP", 54},
		{cut("V04", 56), "IETH", 54},
		{cut("V03", 56), "ImmDt", 54},
		{cut("V01", 60), "payload", 54},
		{v["V08"].b[:20], "IPv4", 14},
		{v["V16"].b[:50], "IPv6", 14},
		{v["H2"].b[:50], "GRH", 14},
		{v["V08"].b[:10], "Ethernet", 0},
		{unhex(t, "020000000002020000000001 8100 00"), "VLAN", 14},
		{unhex(t, "0180c2000001020000000001 8808 0101 0008"), "PFC", 14},
		{unhex(t, "0180c2000001020000000001 8808 01"), "MAC control", 14},
	} {
		_, err := Decode(c.b)
		var e *Error
		if !errors.As(err, &e) || e.Layer != c.layer || e.Off != c.off {
			t.Errorf("%d bytes: %v, want layer %s at %d", len(c.b), err, c.layer, c.off)
		}
	}
	b := bytes.Clone(v["H2"].b)
	b[14+6] = 17
	if _, err := Decode(b); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "next header is 17") {
		t.Errorf("GRH with UDP: %v", err)
	}
	b = bytes.Clone(v["V08"].b)
	b[14+20+5]++
	if _, err := Decode(b); !errors.Is(err, ErrLength) {
		t.Errorf("UDP length: %v", err)
	}
}

// TestOpaque: what is not RoCE stays bytes and writes back.
func TestOpaque(t *testing.T) {
	v := vectors(t)["V08"].b
	set := func(off int, val ...byte) []byte {
		b := bytes.Clone(v)
		copy(b[off:], val)
		return b
	}
	for _, c := range []struct {
		name string
		b    []byte
		net  Net
		udp  bool
	}{
		{"LLDP", set(12, 0x88, 0xcc), NetOther, false},
		{"ICMP", set(14+9, 1), NetIPv4, false},
		{"first fragment", set(14+6, 0x20, 0), NetIPv4, false},
		{"later fragment", set(14+6, 0, 9), NetIPv4, false},
		{"other UDP port", set(14+22, 0x12, 0xb8), NetIPv4, true},
	} {
		p, err := Decode(c.b)
		if err != nil || p.Net != c.net || p.IsUDP != c.udp || p.IsRoCE {
			t.Errorf("%s: net %d UDP %v RoCE %v %v", c.name, p.Net, p.IsUDP, p.IsRoCE, err)
		}
		if got := p.Append(nil); !bytes.Equal(got, c.b) {
			t.Errorf("%s: %x, want %x", c.name, got, c.b)
		}
		if _, ok := p.ComputeICRC(); ok || p.ICRCOK() {
			t.Errorf("%s: has an ICRC", c.name)
		}
	}
	three := unhex(t, "020000000002020000000001 8100 0001 8100 0002 8100 0003 0800")
	if p, err := Decode(three); err != nil || p.NVLAN != 2 || len(p.Payload) != 4 || !bytes.Equal(p.Append(nil), three) {
		t.Errorf("three tags: %d read, %x left, %v", p.NVLAN, p.Payload, err)
	}
}

// TestSealControl: Seal pads PFC and PAUSE to the minimum and adds the FCS.
func TestSealControl(t *testing.T) {
	for _, p := range []Packet{
		{Eth: EthernetFields{Dst: ControlMAC, Src: RNICMAC(1), Type: TypeControl}, Net: NetPFC, PFC: PFCFields{Vector: 8, Time: [8]uint16{3: 65535}}, HasFCS: true},
		{Eth: EthernetFields{Dst: ControlMAC, Src: RNICMAC(1), Type: TypeControl}, Net: NetPause, Quant: 5, HasFCS: true},
	} {
		p.Seal()
		b := p.Append(nil)
		if len(b) != 64 || !CheckFCS(b) {
			t.Errorf("net %d: %x", p.Net, b)
		}
		q, err := DecodeFCS(b)
		if err != nil || !samePacket(p, q) {
			t.Errorf("%+v, want %+v: %v", q, p, err)
		}
	}
}

// TestDamagedPackets flips every bit of a frame: the FCS always catches it, the
// ICRC exactly when an invariant byte is hit.
func TestDamagedPackets(t *testing.T) {
	f := frameOf(Acknowledge, 2, 1, 0x111, 20, func(f *Frame) {})
	good := AppendFrame(nil, &f, FrameContext{IPID: 8})
	variant := map[int]bool{15: true, 22: true, 24: true, 25: true, 40: true, 41: true, 46: true}
	for i := range len(good) {
		b := bytes.Clone(good)
		b[i] ^= 0x04
		if CheckFCS(b) {
			t.Errorf("byte %d damaged, FCS right", i)
		}
		p, err := DecodeFCS(b)
		if err != nil || !p.IsRoCE || i < EthHeader || i >= len(good)-FCSSize {
			continue
		}
		if ok := p.ICRCOK(); ok != variant[i] {
			t.Errorf("byte %d damaged: ICRC right %v, want %v", i, ok, variant[i])
		}
	}
}

// TestPacketRoundTrip draws packets and compares bytes both ways.
func TestPacketRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		op := rapid.SampledFrom(knownOps()).Draw(t, "op")
		var pay []byte
		if op.HasPayload() {
			pay = rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "payload")
		}
		p := samplePacket(op, rapid.SampledFrom([]Net{NetIPv4, NetIPv6, NetGRH}).Draw(t, "net"), rapid.IntRange(0, 2).Draw(t, "vlans"), pay)
		clearUnused(&p)
		p.BTH.PSN, p.BTH.DstQPN = PSN(rapid.Uint32Range(0, PSNMask).Draw(t, "psn")), rapid.Uint32Range(0, PSNMask).Draw(t, "qpn")
		p.HasFCS = rapid.Bool().Draw(t, "fcs")
		p.Seal()
		b := p.Append(nil)
		dec := Decode
		if p.HasFCS {
			dec = DecodeFCS
		}
		q, err := dec(b)
		if err != nil || !samePacket(p, q) || !bytes.Equal(q.Append(nil), b) {
			t.Fatalf("%v\n%+v, want\n%+v", err, q, p)
		}
	})
}
