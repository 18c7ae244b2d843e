package wire

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"pgregory.net/rapid"
)

// TestLayersOracle reads drawn frames with an independent decoder: addresses,
// ToS, TTL, lengths, ports and payloads agree, and checksums are those it
// computes itself.
func TestLayersOracle(t *testing.T) {
	kinds := map[Kind]int{}
	rapid.Check(t, func(t *rapid.T) {
		f, _ := drawFrame(t)
		f.Clear(damage)
		ctx := FrameContext{SrcMAC: PortMAC(1, 2), DstMAC: RNICMAC(3), IPID: 4}
		b := AppendFrame(nil, &f, ctx)
		kinds[f.Kind]++
		p := gopacket.NewPacket(b[:len(b)-FCSSize], layers.LayerTypeEthernet, gopacket.Default)
		eth, ok := p.LinkLayer().(*layers.Ethernet)
		if !ok || !bytes.Equal(eth.SrcMAC, ctx.SrcMAC[:]) {
			t.Fatalf("Ethernet %+v", eth)
		}
		if f.Kind == KindPFC || f.Kind == KindPause {
			if !bytes.Equal(eth.DstMAC, ControlMAC[:]) || eth.EthernetType != layers.EthernetType(TypeControl) {
				t.Fatalf("control frame %+v", eth)
			}
			return
		}
		oracleIPv4(t, p, &f)
		oracleTransport(t, p, &f)
	})
	if kinds[KindData] == 0 || kinds[KindPFC]+kinds[KindPause] == 0 {
		t.Errorf("kinds drawn: %v", kinds)
	}
}

func addr(k uint32) net.IP {
	return net.IP(binary.BigEndian.AppendUint32(nil, NetBase+k))
}

func oracleIPv4(t *rapid.T, p gopacket.Packet, f *Frame) {
	ip, ok := p.NetworkLayer().(*layers.IPv4)
	if !ok {
		t.Fatalf("no IPv4: %v", p)
	}
	if !ip.SrcIP.Equal(addr(f.Src)) || !ip.DstIP.Equal(addr(f.Dst)) {
		t.Fatalf("addresses %v %v, RNICs %d %d", ip.SrcIP, ip.DstIP, f.Src, f.Dst)
	}
	if ip.TOS != f.TOS || ip.TTL != f.TTL || ip.Id != 4 || ip.Flags != layers.IPv4DontFragment || ip.FragOffset != 0 || ip.IHL != 5 {
		t.Fatalf("IPv4 %+v of %v", ip, f)
	}
	if n := int(f.Len) - EthHeader - FCSSize; int(ip.Length) > n || f.Len > MinFrame && int(ip.Length) != n {
		t.Fatalf("total length %d in a frame of %d", ip.Length, f.Len)
	}
	sum, out := ip.Checksum, gopacket.NewSerializeBuffer()
	if err := ip.SerializeTo(out, gopacket.SerializeOptions{ComputeChecksums: true}); err != nil || ip.Checksum != sum {
		t.Fatalf("header checksum %04x, computed %04x %v", sum, ip.Checksum, err)
	}
}

func oracleTransport(t *rapid.T, p gopacket.Packet, f *Frame) {
	ip := p.NetworkLayer().(*layers.IPv4)
	switch f.Kind {
	case KindOther:
		if ip.Protocol != ProtoTest {
			t.Fatalf("protocol %v", ip.Protocol)
		}
	case KindTCP:
		tcp, ok := p.TransportLayer().(*layers.TCP)
		if !ok || uint16(tcp.SrcPort) != f.SPort || tcp.DstPort != FlowPort || tcp.Seq != uint32(f.A) || tcp.Ack != uint32(f.B) || !tcp.ACK || tcp.SYN {
			t.Fatalf("TCP %+v of %v", tcp, f)
		}
		if err := tcp.SetNetworkLayerForChecksum(ip); err != nil {
			t.Fatal(err)
		}
		if err, mis := tcp.VerifyChecksum(); err != nil || !mis.Valid {
			t.Fatalf("TCP checksum %+v %v", mis, err)
		}
	default:
		port := uint16(RoCEPort)
		if f.Kind == KindUDP {
			port = FlowPort
		}
		udp, ok := p.TransportLayer().(*layers.UDP)
		if !ok || uint16(udp.SrcPort) != f.SPort || uint16(udp.DstPort) != port || udp.Checksum != 0 || udp.Length != ip.Length-IPv4Header {
			t.Fatalf("UDP %+v of %v", udp, f)
		}
		if f.Kind != KindUDP {
			oracleBTH(t, udp.Payload, f)
		}
	}
}

// oracleBTH reads the transport header bit by bit from the tables of
// transport §1.2, with no use of the codec.
func oracleBTH(t *rapid.T, b []byte, f *Frame) {
	flag := func(i int, mask byte) bool { return b[i]&mask != 0 }
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"opcode", Opcode(b[0]), f.Op()},
		{"SE", flag(1, 0x80), f.Has(FlagSE)},
		{"M", flag(1, 0x40), f.Has(FlagM)},
		{"TVer", b[1] & 15, byte(0)},
		{"P_Key", [2]byte{b[2], b[3]}, [2]byte{0xff, 0xff}},
		{"FECN", flag(4, 0x80), f.Has(FlagFECN)},
		{"BECN", flag(4, 0x40), f.Has(FlagBECN)},
		{"resv6", b[4] & 0x3f, byte(0)},
		{"QPN", uint32(b[5])<<16 | uint32(b[6])<<8 | uint32(b[7]), f.DstQPN()},
		{"A", flag(8, 0x80), f.Has(FlagAckReq)},
		{"resv7", b[8] & 0x7f, byte(0)},
		{"PSN", PSN(b[9])<<16 | PSN(b[10])<<8 | PSN(b[11]), f.PSN()},
	} {
		if c.got != c.want {
			t.Fatalf("%s is %v, want %v in %x", c.name, c.got, c.want, b[:12])
		}
	}
	if n := len(b) - BTHSize - ICRCSize - f.Op().ExtLen(); n%4 != 0 || int(b[1]>>4&3) != -f.PayloadLen()&3 || n != f.PayloadLen()+f.Pad() {
		t.Fatalf("pad %d of payload %d, %d bytes there", b[1]>>4&3, f.PayloadLen(), n)
	}
}

var update = flag.Bool("update", false, "rewrite testdata/frames.golden")

// TestGoldenFrames pins the bytes of one frame of each opcode and kind, so that
// a change of the format is seen in review.
func TestGoldenFrames(t *testing.T) {
	var out strings.Builder
	line := func(name string, f Frame) {
		b := AppendFrame(nil, &f, FrameContext{SrcMAC: RNICMAC(1), DstMAC: PortMAC(9, 1), IPID: 0x1234})
		fmt.Fprintf(&out, "%s %x\n", name, b)
	}
	for _, op := range knownOps() {
		f := frameOf(op, 1, 2, 17, 0xfffffe, func(f *Frame) {
			f.A, f.D = 0x1122334455667788, 0x1f00002a
		})
		n := 0
		if op.HasPayload() {
			n, f.C = 9, 0xa1a2a3a4a5a6a7a8
			if op == WriteFirst || op == UCWriteFirst {
				n = 12
			}
		}
		f.B = uint64(n)
		f.Len = uint16(RoCELen(op, n))
		line(op.String(), f)
	}
	pfc := Frame{Kind: KindPFC, Len: PFCFrame}
	pfc.SetPFCTime(3, 65535)
	line("pfc", pfc)
	line("pause", Frame{Kind: KindPause, Len: MinFrame, A: 256})
	line("udp", Frame{Kind: KindUDP, Src: 1, Dst: 2, SPort: 7, TTL: 64, Len: 100, A: 1, B: 2, C: 3, D: 4})
	line("tcp", Frame{Kind: KindTCP, Src: 1, Dst: 2, SPort: 7, TTL: 64, Len: 64, A: 1, B: 2})
	line("other", Frame{Kind: KindOther, Src: 1, Dst: 2, SPort: 7, TTL: 64, Len: 64})
	const path = "testdata/frames.golden"
	if *update {
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, exp := strings.Split(out.String(), "\n"), strings.Split(string(want), "\n")
	if len(got) != len(exp) {
		t.Fatalf("%d frames, golden has %d; -update rewrites", len(got), len(exp))
	}
	for i := range got {
		if got[i] != exp[i] {
			t.Errorf("\n%s, want\n%s", got[i], exp[i])
		}
	}
}
