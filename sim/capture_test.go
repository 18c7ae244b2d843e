package sim

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

const captureFile = `
schema: 1
name: capture
topology: {spines: 1, leaves: 1, servers: 2}
workload: [{name: one, from: rnic1, to: rnic2, verb: write, size: 10000B}]
faults: [{name: lose, kind: drop, target: "leaf1:2", at: 0us, match: {dir: out, psn_index: 4}, count: 1}]
capture: [{port: "rnic1:1", file: a}, {port: "leaf1:2", file: a}, {port: "rnic2:1", file: b}]
`

// memFile is an output in memory.
type memFile struct{ bytes.Buffer }

func (*memFile) Close() error { return nil }

// captureRun runs captureFile with captures and returns the files.
func captureRun(t *testing.T, text string) (*report.Result, map[string]*memFile) {
	t.Helper()
	plan, _, err := topology.ParseBytes("capture.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*memFile{}
	var caps *Captures
	o := Options{
		OnBuild: func(f *Fabric) (err error) {
			caps, err = NewCaptures(f, plan.Capture, func(name string) (io.WriteCloser, error) {
				files[name] = new(memFile)
				return files[name], nil
			})
			return err
		},
		Records: func(b []record.Record) { caps.Records(b) },
		Between: func(at clock.Time, n uint64) { caps.Between(at, n) },
	}
	r, err := Run(context.Background(), plan, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := caps.Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range caps.ports {
		if n := p.tap.Missed(); n > 0 {
			t.Errorf("a tap missed %d frames", n)
		}
	}
	return r, files
}

// eachFrame visits the frames of a capture.
func eachFrame(t *testing.T, file []byte, visit func(b []byte, ci gopacket.CaptureInfo)) {
	t.Helper()
	rd, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for {
		b, ci, err := rd.ReadPacketData()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		visit(b, ci)
	}
}

// TestCapturesHoldEveryFrame counts frames against the ports' counters, checks
// their order and that capturing does not change the run.
func TestCapturesHoldEveryFrame(t *testing.T) {
	r, files := captureRun(t, captureFile)
	plain, _ := captureRun(t, captureFile[:strings.Index(captureFile, "capture: [{")])
	if r.Digest != plain.Digest {
		t.Errorf("digest %s with captures, %s without", r.Digest, plain.Digest)
	}
	frames := map[int]uint64{}
	var before int64
	eachFrame(t, files["a"].Bytes(), func(b []byte, ci gopacket.CaptureInfo) {
		if at := ci.Timestamp.UnixNano(); at < before {
			t.Errorf("time runs back: %d after %d", at, before)
		} else {
			before = at
		}
		if len(b) < wire.MinFrame {
			t.Errorf("frame of %d bytes", len(b))
		}
		frames[ci.InterfaceIndex]++
	})
	nic, port := r.RNICs["rnic1"], r.Switches["leaf1"].Ports["2"]
	if want := nic.TxPackets + nic.RxPackets; frames[0] != want || want < 15 {
		t.Errorf("%d frames at rnic1:1, its counters say %d", frames[0], want)
	}
	// The lost frame was counted as sent and never reached the cable.
	if want := port.TxFrames + port.RxFrames - r.Totals.DropsByReason["fault"]; frames[1] != want {
		t.Errorf("%d frames at leaf1:2, its counters say %d", frames[1], want)
	}
	if r.Totals.DropsByReason["fault"] != 1 || r.Totals.Retransmitted == 0 {
		t.Errorf("totals %+v: the fault did not act", r.Totals)
	}
}

// TestCaptureShowsTheDamage: a damaged EtherType, and nothing else wrong, at
// both ends of the way through the switch; the RNIC drops it as bad_header.
func TestCaptureShowsTheDamage(t *testing.T) {
	from, to := strings.Index(captureFile, "faults: ["), strings.Index(captureFile, "capture: [")
	r, files := captureRun(t, captureFile[:from]+`faults: ["corrupt rnic1:1 name=x dir=out field=ethertype psn_index=4 count=1"]`+"\n"+captureFile[to:])
	if r.Totals.DropsByReason["bad_header"] != 1 || r.Totals.DroppedFrames != 1 || r.Totals.Retransmitted == 0 {
		t.Errorf("totals %+v", r.Totals)
	}
	for _, name := range []string{"a", "b"} {
		wrong := 0
		eachFrame(t, files[name].Bytes(), func(b []byte, ci gopacket.CaptureInfo) {
			if b[12] == 8 && b[13] == 0 {
				return
			}
			wrong++
			f, err := wire.DecodeFrame(b, wire.FrameContext{})
			if err != nil || !wire.CheckFCS(b) || !f.Has(wire.DamagedType) || f.Has(wire.FlagBadFCS) || f.Op() != wire.WriteMiddle {
				t.Errorf("%s, interface %d: %v %v", name, ci.InterfaceIndex, &f, err)
			}
			b[12] = 8
			if p, err := wire.DecodeFCS(b); err != nil || !p.ICRCOK() || p.Eth.Type != wire.TypeIPv4 {
				t.Errorf("%s: %v: more than the type is wrong", name, err)
			}
		})
		if want := map[string]int{"a": 2, "b": 1}[name]; wrong != want {
			t.Errorf("%s: %d damaged frames, want %d", name, wrong, want)
		}
	}
}

// TestCaptureInstant: the first frame's last bit leaves rnic1:1 after its
// serialisation, and passes the far end of the cable one propagation later.
func TestCaptureInstant(t *testing.T) {
	plan, _, err := topology.ParseBytes("capture.yaml", []byte(captureFile))
	if err != nil {
		t.Fatal(err)
	}
	dev := &plan.Devices[plan.RNICs[0]]
	p := &dev.Ports[0]
	f := wire.Frame{Len: 1102, Kind: wire.KindData}
	full := p.Rate.Span(int64(f.Len) + wire.Overhead)
	f.At = clock.Time(0).Add(p.EgressHalf + full + p.Prop + p.PeerIngressHalf)
	out := &capPort{dir: 2, from: p}
	in := &capPort{dir: 1, from: p}
	if got, want := out.passes(&f), clock.Time(0).Add(p.EgressHalf+full); got != want {
		t.Errorf("out: %v, want %v", got, want)
	}
	if got, want := in.passes(&f), clock.Time(0).Add(p.EgressHalf+full+p.Prop); got != want {
		t.Errorf("in: %v, want %v", got, want)
	}
}
