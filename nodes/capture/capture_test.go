package capture

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// read is one packet of a file as pcapgo sees it.
type read struct {
	data    []byte
	at      time.Time
	port    string
	comment string
	flags   *pcapgo.NgEpbFlags
}

func readAll(t *testing.T, b []byte) []read {
	t.Helper()
	r, err := pcapgo.NewNgReader(bytes.NewReader(b), pcapgo.NgReaderOptions{WantMixedLinkType: true})
	if err != nil {
		t.Fatal(err)
	}
	var out []read
	for {
		data, ci, opts, err := r.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		i, err := r.Interface(ci.InterfaceIndex)
		if err != nil || i.LinkType != layers.LinkTypeEthernet || i.TimestampResolution != nanoseconds {
			t.Fatalf("interface %+v %v", i, err)
		}
		out = append(out, read{data, ci.Timestamp, i.Name, strings.Join(opts.Comments, "|"), opts.Flags})
	}
}

func ackFrame() wire.Frame {
	f := wire.Frame{Kind: wire.KindAck, Src: 2, Dst: 1, SPort: 0xc000, TTL: 64, TOS: 2, Len: wire.AckFrame}
	f.SetOp(wire.Acknowledge, 0x111)
	f.SetAETH(0x1f, 7)
	return f
}

// TestReadBack writes frames of several ports and reads them with pcapgo.
func TestReadBack(t *testing.T) {
	var file bytes.Buffer
	w, err := New(&file, Options{App: "rocemu"})
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := w.Port("leaf1", "1", 100*clock.Gbps)
	if err != nil {
		t.Fatal(err)
	}
	nic, err := w.Port("rnic1", "1", 0)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := w.Port("leaf1", "1", 0); err != nil || again != leaf {
		t.Errorf("second look-up: %d %v", again, err)
	}
	ack, pfc := ackFrame(), wire.Frame{Kind: wire.KindPFC, Len: wire.PFCFrame}
	pfc.SetPFCTime(3, 65535)
	ctx := wire.FrameContext{SrcMAC: wire.RNICMAC(2), DstMAC: wire.RNICMAC(1), IPID: 8}
	at := []clock.Time{1_238_765, 1<<40 + 1, clock.Time(3600 * clock.Second)}
	steps := []error{
		w.Frame(leaf, at[0], DirOut, &ack, ctx, ""),
		w.Frame(nic, at[1], DirIn, &pfc, ctx, "pause: priority 3, 65535 quanta"),
		w.Frame(leaf, at[2], DirUnknown, &ack, ctx, "dropped: ttl"),
		w.Close(),
	}
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
	got := readAll(t, file.Bytes())
	if len(got) != 3 {
		t.Fatalf("%d packets", len(got))
	}
	ackBytes := wire.AppendFrame(nil, &ack, ctx)
	for i, want := range []read{
		{ackBytes, time.Unix(0, 1238), "leaf1:1", "", &pcapgo.NgEpbFlags{Direction: pcapgo.NgEpbFlagDirectionOutbound}},
		{wire.AppendFrame(nil, &pfc, ctx), time.Unix(1, 99511627), "rnic1:1", "pause: priority 3, 65535 quanta", &pcapgo.NgEpbFlags{Direction: pcapgo.NgEpbFlagDirectionInbound}},
		{ackBytes, time.Unix(3600, 0), "leaf1:1", "dropped: ttl", nil},
	} {
		g := got[i]
		if !bytes.Equal(g.data, want.data) || !g.at.Equal(want.at) || g.port != want.port || g.comment != want.comment {
			t.Errorf("packet %d: %+v, want %+v", i, g, want)
		}
		if (g.flags == nil) != (want.flags == nil) || g.flags != nil && g.flags.Direction != want.flags.Direction {
			t.Errorf("packet %d: flags %+v", i, g.flags)
		}
	}
}

func TestErrors(t *testing.T) {
	if _, err := New(io.Discard, Options{Ring: true}); err == nil {
		t.Error("a ring without a size")
	}
	w, err := New(io.Discard, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Packet(0, 0, DirIn, nil, ""); !errors.Is(err, ErrPort) {
		t.Errorf("no port yet: %v", err)
	}
	id, err := w.Port("a", "1", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []clock.Time{-1, clock.Never} {
		if err := w.Packet(id, at, DirIn, []byte{1}, ""); err == nil {
			t.Errorf("time %v accepted", at)
		}
	}
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Error(err)
	}
	if err := w.Packet(id, 0, DirIn, nil, ""); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := w.Port("b", "1", 0); !errors.Is(err, ErrClosed) {
		t.Errorf("port after Close: %v", err)
	}
	if _, err := New(full{}, Options{}); !errors.Is(err, errFull) {
		t.Errorf("full disk: %v", err)
	}
}

var errFull = errors.New("no space left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestCap keeps the first packets, the ring the last ones; both count the rest
// and stay within the size.
func TestCap(t *testing.T) {
	for _, ring := range []bool{false, true} {
		for limit := int64(1); limit < 1200; limit += 37 {
			var file bytes.Buffer
			w, err := New(&file, Options{MaxBytes: limit, Ring: ring})
			if err != nil {
				t.Fatal(err)
			}
			id, err := w.Port("leaf1", "2", clock.Gbps)
			if err != nil {
				t.Fatal(err)
			}
			head := int64(file.Len())
			const n = 50
			for i := range n {
				data := bytes.Repeat([]byte{byte(i)}, 60+i%7)
				if err := w.Packet(id, clock.Time(i)*1000, DirOut, data, ""); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			checkKept(t, readAll(t, file.Bytes()), ring, n, w.Skipped())
			if size := int64(file.Len()) - head; size > limit {
				t.Errorf("ring %v: %d bytes of %d", ring, size, limit)
			}
			if kept := n - int(w.Skipped()); limit >= 500 && kept < 3 {
				t.Errorf("ring %v limit %d: kept %d", ring, limit, kept)
			}
		}
	}
}

// checkKept: the packets are consecutive, from the first, or up to the last.
func checkKept(t *testing.T, got []read, ring bool, n int, skipped uint64) {
	t.Helper()
	if uint64(len(got))+skipped != uint64(n) {
		t.Errorf("%d kept and %d skipped of %d", len(got), skipped, n)
	}
	if len(got) == 0 {
		return
	}
	first := 0
	if ring {
		first = n - len(got)
	}
	for i, g := range got {
		if want := byte(first + i); g.data[0] != want || len(g.data) != 60+int(want)%7 {
			t.Errorf("ring %v: packet %d is number %d, want %d", ring, i, g.data[0], want)
		}
	}
}

// TestNoAllocs: capturing in the steady state does not allocate.
func TestNoAllocs(t *testing.T) {
	w, err := New(io.Discard, Options{})
	if err != nil {
		t.Fatal(err)
	}
	id, err := w.Port("leaf1", "1", 0)
	if err != nil {
		t.Fatal(err)
	}
	f := ackFrame()
	if n := testing.AllocsPerRun(100, func() { _ = w.Frame(id, 5, DirOut, &f, wire.FrameContext{}, "") }); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}

func BenchmarkFrame(b *testing.B) {
	w, err := New(io.Discard, Options{})
	if err != nil {
		b.Fatal(err)
	}
	id, _ := w.Port("leaf1", "1", 0)
	f := ackFrame()
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Frame(id, 5, DirOut, &f, wire.FrameContext{}, ""); err != nil {
			b.Fatal(err)
		}
	}
}

// writeAll captures every opcode the codec names, and PFC, PAUSE, UDP and TCP.
func writeAll(t *testing.T, path string) int {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := New(file, Options{App: "rocemu"})
	if err != nil {
		t.Fatal(err)
	}
	id, err := w.Port("leaf1", "1", 100*clock.Gbps)
	if err != nil {
		t.Fatal(err)
	}
	frames := []wire.Frame{
		{Kind: wire.KindPFC, Len: 64, A: 0xffff << 48, D: 8},
		{Kind: wire.KindPause, Len: 64, A: 9},
		{Kind: wire.KindUDP, Src: 1, Dst: 2, SPort: 40000, TTL: 64, Len: 500},
		{Kind: wire.KindTCP, Src: 1, Dst: 2, SPort: 40001, TTL: 64, Len: 500},
	}
	for _, name := range wire.OpcodeNames() {
		op, err := wire.ParseOpcode(name)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		if op.HasPayload() {
			n = 8
		}
		f := wire.Frame{Kind: wire.KindOf(op), Src: 1, Dst: 2, SPort: wire.SPort(17, 18), TTL: 64, TOS: 26<<2 | wire.ECT0, Len: uint16(wire.RoCELen(op, n)), D: 0x1f000001}
		f.SetOp(op, 17)
		f.SetPad(n)
		if op.Ext()&wire.ExtRETH != 0 {
			f.B = uint64(n)
		}
		if op == wire.CNP {
			f.Set(wire.FlagBECN)
		}
		frames = append(frames, f)
	}
	for i := range frames {
		if err := w.Frame(id, clock.Time(i)*1_238_001+clock.Time(i/2)*clock.Time(900*clock.Millisecond), DirOut, &frames[i], wire.FrameContext{SrcMAC: wire.RNICMAC(1), DstMAC: wire.RNICMAC(2)}, "frame "+frames[i].String()); err != nil {
			t.Fatal(err)
		}
	}
	return len(frames)
}

// TestTshark reads a capture of everything: no malformed packet, right FCS,
// and CNPs named by the script that ships with the product.
func TestTshark(t *testing.T) {
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Skip("tshark is absent: apt-get install tshark")
	}
	path := filepath.Join(t.TempDir(), "all.pcapng")
	n := writeAll(t, path)
	run := func(args ...string) []string {
		// Payload is a fill, which Wireshark may take for RPC over RDMA.
		args = append([]string{"-r", path, "--disable-heuristic", "rpcrdma_infiniband", "-o", "eth.check_fcs:TRUE", "-X", "lua_script:../../deploy/wireshark/cnp.lua"}, args...)
		out, err := exec.Command("tshark", args...).Output()
		if err != nil {
			t.Fatalf("tshark %v: %v", args, err)
		}
		if s := strings.TrimSpace(string(out)); s != "" {
			return strings.Split(s, "\n")
		}
		return nil
	}
	if bad := run("-Y", "_ws.malformed || eth.fcs.status == 0 || ip.checksum.status == 0"); bad != nil {
		t.Errorf("malformed:\n%s", strings.Join(bad, "\n"))
	}
	all := run("-T", "fields", "-e", "frame.number", "-e", "frame.time_epoch", "-e", "frame.interface_name", "-e", "eth.fcs.status")
	if len(all) != n || all[1] != "2\t0.000001238\tleaf1:1\t1" || !strings.HasPrefix(all[2], "3\t0.900002476\t") {
		t.Errorf("%d packets of %d: %q", len(all), n, all)
	}
	cnp := run("-Y", "infiniband.bth.opcode == 0x81", "-T", "fields", "-e", "rocecnp.becn", "-e", "rocecnp.fecn", "-e", "rocecnp.destqp", "-e", "_ws.col.Info")
	if len(cnp) != 1 || cnp[0] != "1\t0\t0x000011\tCNP QP=0x000011" {
		t.Errorf("CNP: %q", cnp)
	}
}
