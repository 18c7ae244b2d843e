package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net/netip"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"pgregory.net/rapid"
)

func TestEthernetAndMACs(t *testing.T) {
	f := EthernetFields{Dst: RNICMAC(2), Src: RNICMAC(0x10203), Type: TypeIPv6}
	b := f.Append(nil)
	if want := unhex(t, "020000000002 020000010203 86dd"); !bytes.Equal(b, want) {
		t.Errorf("%x, want %x", b, want)
	}
	h, rest, err := ParseEthernet(append(b, 1, 2))
	if err != nil || h.Fields() != f || !bytes.Equal(rest, []byte{1, 2}) {
		t.Errorf("%+v rest %x err %v", h.Fields(), rest, err)
	}
	if s := RNICMAC(1).String(); s != "02:00:00:00:00:01" {
		t.Error(s)
	}
	if s := PortMAC(0x102, 3).String(); s != "02:01:01:02:00:03" {
		t.Error(s)
	}
}

func TestVLANFields(t *testing.T) {
	for _, c := range []struct {
		f   VLANFields
		hex string
	}{
		{VLANFields{PCP: 3, VID: 100, Type: TypeIPv4}, "60640800"},
		{VLANFields{PCP: 7, DEI: true, VID: 4095, Type: TypeVLAN}, "ffff8100"},
		{VLANFields{Type: TypeControl}, "00008808"},
	} {
		b := c.f.Append(nil)
		if want := unhex(t, c.hex); !bytes.Equal(b, want) {
			t.Errorf("%+v: %x, want %x", c.f, b, want)
		}
		h, rest, err := ParseVLAN(b)
		if err != nil || len(rest) != 0 || h.Fields() != c.f {
			t.Errorf("%s: %+v %v", c.hex, h.Fields(), err)
		}
	}
}

// TestBTHBits sets one field at a time and looks for its bits (transport §1.2).
func TestBTHBits(t *testing.T) {
	for _, c := range []struct {
		f   BTHFields
		hex string
	}{
		{BTHFields{Op: WriteOnly}, "0a0000000000000000000000"},
		{BTHFields{SE: true}, "008000000000000000000000"},
		{BTHFields{M: true}, "004000000000000000000000"},
		{BTHFields{PadCnt: 3}, "003000000000000000000000"},
		{BTHFields{TVer: 15}, "000f00000000000000000000"},
		{BTHFields{PKey: 0xfffe}, "0000fffe0000000000000000"},
		{BTHFields{FECN: true}, "000000008000000000000000"},
		{BTHFields{BECN: true}, "000000004000000000000000"},
		{BTHFields{Resv6: 0x3f}, "000000003f00000000000000"},
		{BTHFields{DstQPN: 0xabcdef}, "0000000000abcdef00000000"},
		{BTHFields{AckReq: true}, "000000000000000080000000"},
		{BTHFields{Resv7: 0x7f}, "00000000000000007f000000"},
		{BTHFields{PSN: 0x123456}, "000000000000000000123456"},
	} {
		b := c.f.Append(nil)
		if want := unhex(t, c.hex); !bytes.Equal(b, want) {
			t.Errorf("%+v: %x, want %x", c.f, b, want)
		}
		h, rest, err := ParseBTH(append(b, 9))
		if err != nil || h.Fields() != c.f || len(rest) != 1 {
			t.Errorf("%s: %+v %v", c.hex, h.Fields(), err)
		}
	}
}

func TestKeyMatch(t *testing.T) {
	for _, c := range []struct {
		a, b uint16
		want bool
	}{
		{0xffff, 0xffff, true},
		{0xffff, 0x7fff, true},
		{0x7fff, 0x7fff, false},
		{0x8001, 0x0001, true},
		{0x8001, 0x8002, false},
		{0x8000, 0x8000, false},
	} {
		if KeyMatch(c.a, c.b) != c.want || KeyMatch(c.b, c.a) != c.want {
			t.Errorf("%04x %04x: want %v", c.a, c.b, c.want)
		}
	}
}

func TestExtensionHeaders(t *testing.T) {
	r := RETHFields{VA: 0x0102030405060708, RKey: 0x11223344, DMALen: 1 << 31}
	b := r.Append(nil)
	if want := unhex(t, "0102030405060708 11223344 80000000"); !bytes.Equal(b, want) {
		t.Errorf("RETH %x", b)
	}
	if h, rest, err := ParseRETH(b); err != nil || len(rest) != 0 || h.Fields() != r {
		t.Errorf("RETH %+v %v", h.Fields(), err)
	}
	a := AtomicFields{VA: 8, RKey: 2, SwapAdd: 1<<64 - 1, Compare: 0x55}
	b = a.Append(nil)
	if want := unhex(t, "0000000000000008 00000002 ffffffffffffffff 0000000000000055"); !bytes.Equal(b, want) {
		t.Errorf("AtomicETH %x", b)
	}
	if h, rest, err := ParseAtomicETH(b); err != nil || len(rest) != 0 || h.Fields() != a {
		t.Errorf("AtomicETH %+v %v", h.Fields(), err)
	}
	e := AETHFields{Syndrome: SynNAKAccess, MSN: 0xfedcba}
	b = e.Append(nil)
	if want := unhex(t, "62fedcba"); !bytes.Equal(b, want) {
		t.Errorf("AETH %x", b)
	}
	if h, rest, err := ParseAETH(b); err != nil || len(rest) != 0 || h.Fields() != e {
		t.Errorf("AETH %+v %v", h.Fields(), err)
	}
	if h, _, err := ParseAtomicAckETH(unhex(t, "0102030405060708")); err != nil || h.Original() != 0x0102030405060708 {
		t.Errorf("AtomicAckETH %v", err)
	}
	if h, _, err := ParseWord(unhex(t, "cafebabe"), "ImmDt"); err != nil || h.Value() != 0xcafebabe {
		t.Errorf("ImmDt %v", err)
	}
}

// TestShortHeaders cuts every header by one byte: ErrShort with layer and sizes.
func TestShortHeaders(t *testing.T) {
	cases := []struct {
		layer string
		n     int
		parse func(b []byte) error
	}{
		{"Ethernet", EthHeader, func(b []byte) error { _, _, err := ParseEthernet(b); return err }},
		{"VLAN", VLANSize, func(b []byte) error { _, _, err := ParseVLAN(b); return err }},
		{"IPv4", IPv4Header, func(b []byte) error { _, _, err := ParseIPv4(b); return err }},
		{"IPv6", IPv6Header, func(b []byte) error { _, _, err := ParseIPv6(b, "IPv6"); return err }},
		{"GRH", IPv6Header, func(b []byte) error { _, _, err := ParseIPv6(b, "GRH"); return err }},
		{"UDP", UDPHeader, func(b []byte) error { _, _, err := ParseUDP(b); return err }},
		{"BTH", BTHSize, func(b []byte) error { _, _, err := ParseBTH(b); return err }},
		{"RETH", RETHSize, func(b []byte) error { _, _, err := ParseRETH(b); return err }},
		{"AtomicETH", AtomicSize, func(b []byte) error { _, _, err := ParseAtomicETH(b); return err }},
		{"AETH", AETHSize, func(b []byte) error { _, _, err := ParseAETH(b); return err }},
		{"AtomicAckETH", AtomAckSize, func(b []byte) error { _, _, err := ParseAtomicAckETH(b); return err }},
		{"IETH", ImmSize, func(b []byte) error { _, _, err := ParseWord(b, "IETH"); return err }},
		{"PFC", 20, func(b []byte) error { _, _, err := ParsePFC(b); return err }},
		{"PAUSE", 4, func(b []byte) error { _, _, err := ParsePause(b); return err }},
		{"FCS", 4, func(b []byte) error { _, err := DecodeFCS(b); return err }},
	}
	for _, c := range cases {
		for n := range c.n {
			err := c.parse(make([]byte, n))
			var e *Error
			if !errors.As(err, &e) || !errors.Is(err, ErrShort) || e.Layer != c.layer || e.Got != n {
				t.Fatalf("%s with %d bytes: %v", c.layer, n, err)
			}
			if s := err.Error(); !strings.Contains(s, c.layer) || !strings.Contains(s, "too short") {
				t.Errorf("%s: %q does not say what is wrong", c.layer, s)
			}
		}
	}
}

func TestIPv4Errors(t *testing.T) {
	ok := IPv4Fields{TotalLen: 24, TTL: 1, Proto: 6, Src: 1, Dst: 2}
	good := append(ok.Append(nil), 1, 2, 3, 4)
	if _, body, err := ParseIPv4(append(bytes.Clone(good), 0, 0)); err != nil || len(body) != 4 {
		t.Errorf("good header with padding: body %x, %v", body, err)
	}
	for _, c := range []struct {
		name  string
		off   int
		val   byte
		cause error
	}{
		{"version 6", 0, 0x65, ErrVersion},
		{"IHL 4", 0, 0x44, ErrLength},
		{"IHL 15", 0, 0x4f, ErrLength},
		{"total below IHL", 3, 19, ErrLength},
		{"total beyond frame", 3, 25, ErrLength},
	} {
		b := bytes.Clone(good)
		b[c.off] = c.val
		if _, _, err := ParseIPv4(b); !errors.Is(err, c.cause) {
			t.Errorf("%s: %v, want %v", c.name, err, c.cause)
		}
	}
	v6 := make([]byte, IPv6Header)
	if _, _, err := ParseIPv6(v6, "IPv6"); !errors.Is(err, ErrVersion) {
		t.Errorf("IPv6 version 0: %v", err)
	}
	v6[0], v6[5] = 0x60, 1
	if _, _, err := ParseIPv6(v6, "IPv6"); !errors.Is(err, ErrLength) {
		t.Errorf("IPv6 payload beyond frame: %v", err)
	}
	if _, _, err := ParseUDP([]byte{0, 0, 0, 0, 0, 9, 0, 0}); !errors.Is(err, ErrLength) {
		t.Errorf("UDP length 9 of 8: %v", err)
	}
}

// TestIPv4Checksum compares with a sum by definition, odd and long inputs too.
func TestIPv4Checksum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 80).Draw(t, "b")
		var want uint32
		for i, v := range b {
			if i%2 == 0 {
				want += uint32(v) << 8
			} else {
				want += uint32(v)
			}
			want = want&0xffff + want>>16
		}
		if got := onesSum(0, b); uint32(got) != want {
			t.Fatalf("sum %04x, want %04x", got, want)
		}
	})
	b := unhex(t, "4500003000084000401126b10a0000020a000001")
	if h := IPv4(b); h.Valid() { // V08 with ToS 0 instead of 2
		t.Error("wrong checksum accepted")
	} else if h.SetTOS(2); !h.Valid() || h.Checksum() != 0x26b1 {
		t.Errorf("checksum %04x, want 26b1", h.Checksum())
	}
}

func TestIPv4RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := IPv4Fields{
			TOS: rapid.Uint8().Draw(t, "tos"), ID: rapid.Uint16().Draw(t, "id"), Frag: rapid.Uint16().Draw(t, "frag"),
			TTL: rapid.Uint8().Draw(t, "ttl"), Proto: rapid.Uint8().Draw(t, "proto"), Checksum: rapid.Uint16().Draw(t, "sum"),
			Src: rapid.Uint32().Draw(t, "src"), Dst: rapid.Uint32().Draw(t, "dst"),
		}
		opt := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "opt")
		if opt = opt[:len(opt)&^3]; len(opt) > 0 {
			f.Options = opt
		}
		f.TotalLen = uint16(IPv4Header + len(opt))
		h, body, err := ParseIPv4(f.Append(nil))
		if err != nil || len(body) != 0 {
			t.Fatal(err)
		}
		g := h.Fields()
		if !bytes.Equal(g.Options, f.Options) {
			t.Fatalf("options %x, want %x", g.Options, f.Options)
		}
		if !bytes.Equal(g.Append(nil), f.Append(nil)) {
			t.Fatalf("%+v, want %+v", g, f)
		}
	})
}

func TestIPv6RoundTrip(t *testing.T) {
	f := IPv6Fields{Class: 0xe2, Flow: 0x1face, Next: 17, HopLimit: 255, Src: netip.MustParseAddr("2022::1023"), Dst: netip.MustParseAddr("::ffff:1.2.3.4")}
	b := f.Append(nil)
	if want := unhex(t, "6e21face 0000 11 ff"); !bytes.Equal(b[:8], want) {
		t.Errorf("%x, want %x", b[:8], want)
	}
	h, _, err := ParseIPv6(b, "IPv6")
	if err != nil || h.Fields() != f {
		t.Errorf("%+v %v", h.Fields(), err)
	}
	var zero IPv6Fields
	if h, _, err := ParseIPv6(zero.Append(nil), "GRH"); err != nil || h.Fields().Src != netip.IPv6Unspecified() {
		t.Errorf("unset address: %v %v", h.Fields().Src, err)
	}
}

// icrcByDefinition masks a copy and runs the CRC over eight 0xff bytes and it.
func icrcByDefinition(b []byte, ones ...int) uint32 {
	m := append(bytes.Repeat([]byte{0xff}, 8), b...)
	for _, i := range ones {
		m[8+i] = 0xff
	}
	return crc32.ChecksumIEEE(m)
}

// TestICRCByDefinition compares the fast forms with the definition, and proves
// which bytes are covered: exactly the masked ones do not change the result.
func TestICRCByDefinition(t *testing.T) {
	v4, v6, v1 := make([]byte, 70), make([]byte, 90), make([]byte, 80)
	for i := range v6 {
		v6[i] = byte(37*i + 1)
	}
	copy(v4, v6)
	copy(v1, v6)
	v4[0], v6[0], v1[0] = 0x45, 0x6e, 0x6e
	for _, c := range []struct {
		name string
		b    []byte
		f    func([]byte) uint32
		ones []int
		half bool // byte 0: low nibble masked
	}{
		{"v4", v4, ICRCv4, []int{1, 8, 10, 11, 26, 27, 32}, false},
		{"v6", v6, ICRCv6, []int{1, 2, 3, 7, 46, 47, 52}, true},
		{"v1", v1, ICRCv1, []int{1, 2, 3, 7, 44}, true},
	} {
		keep := bytes.Clone(c.b)
		ref := bytes.Clone(c.b)
		if c.half {
			ref[0] |= 15
		}
		want := icrcByDefinition(ref, c.ones...)
		if got := c.f(c.b); got != want {
			t.Errorf("%s: %08x, want %08x", c.name, got, want)
		}
		masked := map[int]bool{}
		for _, i := range c.ones {
			masked[i] = true
		}
		for i := 1; i < len(c.b); i++ {
			c.b[i] ^= 0x10
			if same := c.f(c.b) == want; same != masked[i] {
				t.Errorf("%s byte %d: masked %v, want %v", c.name, i, same, masked[i])
			}
			c.b[i] ^= 0x10
		}
		if !bytes.Equal(c.b, keep) {
			t.Errorf("%s: input changed", c.name)
		}
	}
	opts := append(bytes.Clone(v4[:20]), bytes.Repeat([]byte{1}, 4)...)
	opts = append(opts, v4[20:]...)
	opts[0] = 0x46
	if got, want := ICRCv4(opts), icrcByDefinition(opts, 1, 8, 10, 11, 30, 31, 36); got != want {
		t.Errorf("v4 with options: %08x, want %08x", got, want)
	}
}

func TestFCS(t *testing.T) {
	b := []byte("123456789") // the check value of CRC-32
	if FCS(b) != 0xcbf43926 {
		t.Errorf("FCS %08x", FCS(b))
	}
	f := binary.LittleEndian.AppendUint32(b, FCS(b))
	if !CheckFCS(f) {
		t.Error("right FCS refused")
	}
	for i := range f {
		f[i] ^= 0x40
		if CheckFCS(f) {
			t.Errorf("byte %d damaged, FCS still right", i)
		}
		f[i] ^= 0x40
	}
	if CheckFCS([]byte{1, 2, 3}) {
		t.Error("three bytes have no FCS")
	}
}

// TestPFCBytes is switch case C23.
func TestPFCBytes(t *testing.T) {
	head := "0180c2000001 020000000001 8808 0101"
	for _, c := range []struct {
		name string
		set  func(f *Frame)
		body string
	}{
		{"pause 3", func(f *Frame) { f.SetPFCTime(3, 65535) }, "0008 0000 0000 0000 ffff 0000 0000 0000 0000"},
		{"resume 3", func(f *Frame) { f.SetPFCTime(3, 0) }, "0008 0000 0000 0000 0000 0000 0000 0000 0000"},
		{"pause 3 and 4", func(f *Frame) { f.SetPFCTime(3, 65535); f.SetPFCTime(4, 65535) }, "0018 0000 0000 0000 ffff ffff 0000 0000 0000"},
		{"pause 7 and resume 0", func(f *Frame) { f.SetPFCTime(7, 0x1234); f.SetPFCTime(0, 0) }, "0081 0000 0000 0000 0000 0000 0000 0000 1234"},
	} {
		f := Frame{Kind: KindPFC, Len: PFCFrame}
		c.set(&f)
		b := AppendFrame(nil, &f, FrameContext{SrcMAC: RNICMAC(1)})
		want := append(unhex(t, head+c.body), make([]byte, 26)...)
		if len(b) != 64 || !bytes.Equal(b[:60], want) || !CheckFCS(b) {
			t.Errorf("%s:\n%x, want\n%x", c.name, b, want)
		}
		p, err := DecodeFCS(b)
		if err != nil || p.Net != NetPFC || p.PFC.Vector != uint16(f.D) || !bytes.Equal(p.Append(nil), b) {
			t.Errorf("%s: %+v %v", c.name, p.PFC, err)
		}
		for i, q := range p.PFC.Time {
			if q != f.PFCTime(i) {
				t.Errorf("%s: time[%d] = %d, want %d", c.name, i, q, f.PFCTime(i))
			}
		}
	}
}

func TestPauseBytes(t *testing.T) {
	f := Frame{Kind: KindPause, Len: MinFrame, A: 0xffff}
	b := AppendFrame(nil, &f, FrameContext{SrcMAC: RNICMAC(1)})
	want := append(unhex(t, "0180c2000001 020000000001 8808 0001 ffff"), make([]byte, 42)...)
	if !bytes.Equal(b[:60], want) || !CheckFCS(b) || len(b) != 64 {
		t.Errorf("%x", b)
	}
	p, err := DecodeFCS(b)
	if err != nil || p.Net != NetPause || p.Quant != 0xffff || !bytes.Equal(p.Append(nil), b) {
		t.Errorf("%+v %v", p, err)
	}
	b[15] = 2 // another MAC control opcode: opaque
	if p, err = DecodeFCS(b); err != nil || p.Net != NetOther || !bytes.Equal(p.Append(nil), b) {
		t.Errorf("opcode 2: net %d %v", p.Net, err)
	}
	for _, parse := range []func() error{
		func() error { _, _, err := ParsePFC(make([]byte, 20)); return err },
		func() error { _, _, err := ParsePause(make([]byte, 20)); return err },
	} {
		if err := parse(); !errors.Is(err, ErrUnsupported) {
			t.Errorf("opcode 0: %v", err)
		}
	}
}

// TestQuanta is switch case C24.
func TestQuanta(t *testing.T) {
	for _, c := range []struct {
		q    uint16
		rate clock.Rate
		want clock.Duration
	}{
		{65535, 10 * clock.Gbps, 3_355_392_000 * clock.Picosecond},
		{65535, 25 * clock.Gbps, 1_342_156_800 * clock.Picosecond},
		{65535, 40 * clock.Gbps, 838_848_000 * clock.Picosecond},
		{65535, 100 * clock.Gbps, 335_539_200 * clock.Picosecond},
		{65535, 400 * clock.Gbps, 83_884_800 * clock.Picosecond},
		{1, 100 * clock.Gbps, 5120 * clock.Picosecond},
		{60, 100 * clock.Gbps, (3840 * 80) * clock.Picosecond},
		{394, 100 * clock.Gbps, 2_017_280 * clock.Picosecond},
		{1, 800 * clock.Gbps, 640 * clock.Picosecond},
		{0, 100 * clock.Gbps, 0},
	} {
		if got := QuantaSpan(c.q, c.rate); got != c.want {
			t.Errorf("%d quanta at %v: %v, want %v", c.q, c.rate, got, c.want)
		}
	}
}

// TestSPort checks the worked examples of switch §5.2 and the range.
func TestSPort(t *testing.T) {
	for _, c := range []struct {
		l, r uint32
		want uint16
	}{{17, 18, 49458}, {256, 257, 49412}, {100000, 200000, 49823}} {
		if got := SPort(c.l, c.r); got != c.want {
			t.Errorf("(%d,%d): %d, want %d", c.l, c.r, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		l, r := rapid.Uint32Range(0, PSNMask).Draw(t, "l"), rapid.Uint32Range(0, PSNMask).Draw(t, "r")
		if p := SPort(l, r); p < 0xc000 || p != SPort(r, l) {
			t.Fatalf("%d: below 0xC000 or not symmetric", p)
		}
	})
	if p := FoldFlowLabel(0xfffff); p != 0xc000|0x3fff^0x3f {
		t.Errorf("flow label fffff: %04x", p)
	}
}
