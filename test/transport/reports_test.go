package transport

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

const reports = "../../examples/reports"

func reportFile(t testing.TB, name string, sets ...string) *topology.Plan {
	t.Helper()
	plan, _, err := topology.Load(topology.LoadOptions{Files: []string{filepath.Join(reports, name+".yaml")}, Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// TestReports runs the public problem reports, named R-Cnn: each must end with
// its expectations met, within a second (virtual time jumps): of processor time,
// so that a busy machine does not fail it.
func TestReports(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(reports, "RC*.yaml"))
	if err != nil || len(files) < 15 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			plan := reportFile(t, name)
			if len(plan.Expect) == 0 {
				t.Fatal("has no expectations")
			}
			begin := cpuTime(t)
			o := execute(t, plan)
			took := cpuTime(t) - begin
			if o.Exit != report.ExitOK {
				t.Errorf("verdict %q: %s", o.Verdict, o.VerdictReason)
			}
			if took > time.Second && !raceEnabled {
				t.Errorf("took %v of processor time for %v of virtual time", took, clock.Time(o.VirtualNS))
			}
		})
	}
}

// cpuTime is what this process has used of the processors.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestReportByCommand runs R-C01 through the emuctl binary: exit code 0 and
// the exact figure in the result object.
func TestReportByCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a binary")
	}
	bin := filepath.Join(t.TempDir(), "emuctl")
	if out, err := exec.Command("go", "build", "-o", bin, "../../cmd/emuctl").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(bin, "run", "--json", filepath.Join(reports, "RC01-flap-timeout-22.yaml"))
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var res struct {
		Verdict string
		Flows   map[string]struct {
			Status  string
			LastEnd float64 `json:"last_end_ns"`
		}
	}
	if err := json.Unmarshal(out, &res); err != nil {
		t.Fatal(err)
	}
	if w := res.Flows["w"]; res.Verdict != "complete" || w.Status != "retry_exc_err" || w.LastEnd != 137439953472 {
		t.Errorf("%+v", res)
	}
}

// TestC06Ratio holds that an RNR wait of code 0 costs 682.7 times one of code
// 13: 655.36 ms against 0.96 ms.
func TestC06Ratio(t *testing.T) {
	clean := execute(t, reportFile(t, "RC06-timer-13", "rnics.all.qp.recv_queue=100000", "rnics.all.qp.recv_batch=1")).Flows["s"].LastEndNS
	a := execute(t, reportFile(t, "RC06-timer-0")).Flows["s"].LastEndNS - clean
	b := execute(t, reportFile(t, "RC06-timer-13")).Flows["s"].LastEndNS - clean
	if r := float64(a) / float64(b); r < 672 || r > 683 {
		t.Errorf("stall of %v against %v: ratio %.1f, want 682.7", a, b, r)
	}
}

// TestC09Seeds runs R-C09 with seeds 1 to 20: all complete, later than the
// clean run and before 20 times it and the timeouts; at least one recovers by
// its timer and one by NAK.
func TestC09Seeds(t *testing.T) {
	seeds := 20
	if testing.Short() || raceEnabled {
		seeds = 3
	}
	plan := reportFile(t, "RC09-every-link-loses")
	plan.Faults, plan.Expect = nil, nil
	clean := execute(t, plan).Flows["p"].LastEndNS
	timers, naks := uint64(0), uint64(0)
	for seed := uint64(1); seed <= uint64(seeds); seed++ {
		plan, _, err := topology.Load(topology.LoadOptions{Files: []string{filepath.Join(reports, "RC09-every-link-loses.yaml")}, Seed: &seed})
		if err != nil {
			t.Fatal(err)
		}
		res, err := sim.Run(context.Background(), plan, sim.Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := sim.Judge(plan, res); err != nil {
			t.Fatal(err)
		}
		if res.Exit != report.ExitOK {
			t.Fatalf("seed %d: %s: %s", seed, res.Verdict, res.VerdictReason)
		}
		var to, seq, oos uint64
		for _, c := range res.RNICs {
			to, seq, oos = to+c.LocalAckTimeoutErr, seq+c.PacketSeqErr, oos+c.OutOfSequence
		}
		timers, naks = timers+to, naks+seq
		last := res.Flows["p"].LastEndNS
		if bound := 20*clean + report.NS(to)*report.NS(qp.AckTimeout(14)); last <= clean || last > bound {
			t.Errorf("seed %d: ends at %v, want above the clean %v and at most %v", seed, last, clean, bound)
		}
		if seq > oos {
			t.Errorf("seed %d: %d NAKs taken of %d sent", seed, seq, oos)
		}
	}
	if timers == 0 || naks == 0 {
		t.Errorf("%d timeouts and %d NAKs: both kinds of recovery should occur", timers, naks)
	}
}

// TestC10Goodput compares the recovery schemes of R-C10 with the line: go-back-n
// loses a round trip of frames at each loss, selective repeat almost nothing.
func TestC10Goodput(t *testing.T) {
	plan := reportFile(t, "RC10-go-back-n")
	plan.Faults, plan.Expect = nil, nil
	line := execute(t, plan).Flows["m"].GoodputBPS
	gbn := execute(t, reportFile(t, "RC10-go-back-n")).Flows["m"].GoodputBPS
	sel := execute(t, reportFile(t, "RC10-selective")).Flows["m"].GoodputBPS
	// A round trip is four cables of 500 ns; frames in it.
	frame := int64(wire.RoCELen(wire.WriteMiddle, 1024)) + 20
	w := 2 * clock.Microsecond / (100 * clock.Gbps).Span(frame)
	want := line * (255 - int64(w)) / 255
	if gbn < want*97/100 || gbn > want*103/100 {
		t.Errorf("go-back-n %d bit/s, want about %d (%d frames a round trip of %d)", gbn, want, w, line)
	}
	if sel < line*99/100 {
		t.Errorf("selective repeat %d bit/s of %d, want 0.99", sel, line)
	}
}

// TestC12Order holds that completions of R-C12 come in posting order, each once:
// successes, one error, flushes; and at the instant of the error.
func TestC12Order(t *testing.T) {
	for _, name := range []string{"RC12-cut", "RC12-destroy"} {
		o := execute(t, reportFile(t, name))
		part := new(report.Part)
		o.nic(1).Fill(part, clock.Time(o.VirtualNS))
		s := part.Samples
		if len(s.Status) != 128 {
			t.Fatalf("%s: %d completions, want 128", name, len(s.Status))
		}
		state := report.Success
		for i, st := range s.Status {
			switch {
			case st == state:
			case state == report.Success && st == report.RetryExcErr, st == report.WRFlushErr:
				state = st
			default:
				t.Errorf("%s: completion %d is %v after %v", name, i, st, state)
			}
			if st != report.Success && s.End[i] != s.End[len(s.End)-1] {
				t.Errorf("%s: completion %d at %v, the error at %v", name, i, s.End[i], s.End[len(s.End)-1])
			}
		}
	}
}

// TestC14 holds that the MTU hole is explained in one line before the run, and
// that a mismatch of the ends is refused at load with its place.
func TestC14(t *testing.T) {
	lints := topology.Lint(reportFile(t, "RC14-mtu-hole"))
	ok := false
	for _, f := range lints {
		ok = ok || strings.Contains(f.Text, "leaf1:2 needs >= 4158 (SEND, MIDDLE; WRITE_FIRST 4174, with immediate 4178, READ response 4162)")
	}
	if !ok {
		t.Errorf("no finding names the port and what it needs: %v", lints)
	}
	_, _, err := topology.LoadBytes("mismatch.yaml", []byte(pair+`rnics: {all: {mtu: 4096}, devices: {rnic2: {mtu: 1024}}}
workload: [{name: w, from: rnic1, to: rnic2, verb: write, size: 8KiB}]
`))
	if err == nil || !strings.Contains(err.Error(), "mismatch.yaml:5:") || !strings.Contains(err.Error(), "path MTU 4096 at rnic1 and 1024 at rnic2") {
		t.Errorf("error %v", err)
	}
}

// TestC15Finding holds that "never worked" and "stopped working" are told apart:
// same status, opposite remedy.
func TestC15Finding(t *testing.T) {
	o := execute(t, reportFile(t, "RC15-no-route"))
	if !found(o, "path-never-worked", "rnic1") || found(o, "path-stopped-working", "rnic1") {
		t.Errorf("no route: %+v", o.Findings)
	}
	o = execute(t, reportFile(t, "RC01-flap-timeout-14"))
	if found(o, "path-never-worked", "rnic1") || !found(o, "path-stopped-working", "rnic1") {
		t.Errorf("flap: %+v", o.Findings)
	}
}
