package fuzzfabric

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

var (
	first = flag.Uint64("first", 1, "first seed")
	seeds = flag.Uint64("seeds", 220, "how many")
	keep  = flag.String("keep", "", "directory for the files of seeds that fail")
	most  = flag.Duration("most", 60*time.Second, "wall time that one run may take")
)

// TestFabrics runs the seeds. A failing one is repeated with
// -run 'TestFabrics/SEED$' -first SEED -seeds 1 -v, which prints its file.
func TestFabrics(t *testing.T) {
	var ran, refused atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for s := *first; s < *first+*seeds; s++ {
			t.Run(fmt.Sprint(s), func(t *testing.T) {
				t.Parallel()
				text, lossy := fabric(s)
				plan, _, err := topology.ParseBytes("fabric.yaml", []byte(text))
				if err != nil {
					refused.Add(1)
					t.Logf("%s\n%v", text, err)
					return
				}
				ran.Add(1)
				if err := check(plan, s, lossy); err != nil {
					t.Errorf("%v\n%s", err, text)
					if *keep != "" {
						os.WriteFile(filepath.Join(*keep, fmt.Sprintf("f%d.yaml", s)), []byte(text), 0o644)
					}
				}
			})
		}
	})
	t.Logf("%d fabrics ran, %d were refused", ran.Load(), refused.Load())
	if ran.Load() < 2*refused.Load() {
		t.Errorf("%d of %d files were refused: the generator no longer writes fabrics", refused.Load(), *seeds)
	}
}

// check runs a plan in every way that must not make a difference.
func check(plan *topology.Plan, seed uint64, lossy bool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	var refused []string
	want, res, err := runWith(plan, sim.Options{Workers: 1, Records: func(b []record.Record) {
		for i := range b {
			if b[i].Kind == record.NakSent && uint8(b[i].Reason) == wire.SynNAKInvalid {
				refused = append(refused, fmt.Sprintf("%s at %v", plan.Devices[b[i].Dev].Name, b[i].At))
			}
		}
	}})
	if err != nil {
		return err
	}
	if len(refused) > 0 { // a requester of ours never asks for what is invalid
		return fmt.Errorf("NAK 0x61 of %v", refused)
	}
	if err := plausible(plan, res, lossy); err != nil {
		return err
	}
	for _, workers := range []int{2, 8} {
		got, _, err := run(plan, workers)
		if err != nil {
			return fmt.Errorf("%d workers: %w", workers, err)
		}
		if d := differs(got, want); d != "" {
			return fmt.Errorf("%d workers: %s", workers, d)
		}
	}
	single, err := inWindows(plan)
	if err != nil {
		return fmt.Errorf("in single windows: %w", err)
	}
	if d := differs(single, want); d != "" {
		return fmt.Errorf("in single windows instead of rounds: %s", d)
	}
	for _, w := range []clock.Duration{plan.Window / 2, plan.Window / 3, clock.Duration(clock.Mix(seed, 1, 2) % uint64(plan.Window))} {
		q := *plan
		q.Window = max(w, plan.Window/40, 1)
		got, _, err := run(&q, 1)
		if err != nil {
			return fmt.Errorf("window %v: %w", q.Window, err)
		}
		if d := differs(got, want); d != "" {
			return fmt.Errorf("window %v instead of %v: %s", q.Window, plan.Window, d)
		}
	}
	at := clock.Mix(seed, 3, 4) % max(res.Engine.Windows, 1)
	got, err := resumed(plan, at)
	if err != nil {
		return fmt.Errorf("saved at window %d of %d: %w", at, res.Engine.Windows, err)
	}
	if d := differs(got, want); d != "" {
		return fmt.Errorf("saved at window %d of %d: %s", at, res.Engine.Windows, d)
	}
	return nil
}

var errSlow = errors.New("took too long")

func run(plan *topology.Plan, workers int) ([]byte, *report.Result, error) {
	return runWith(plan, sim.Options{Workers: workers})
}

// inWindows runs a plan window by window: somebody looks between any two.
func inWindows(plan *topology.Plan) ([]byte, error) {
	b, _, err := runWith(plan, sim.Options{Workers: 1, Between: func(clock.Time, uint64) {}})
	return b, err
}

func runWith(plan *topology.Plan, o sim.Options) ([]byte, *report.Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), *most)
	defer cancel()
	res, err := sim.Run(ctx, plan, o)
	if err != nil {
		return nil, nil, err
	}
	if ctx.Err() != nil {
		return nil, res, fmt.Errorf("%w: at %v virtual, %d hops, %d windows", errSlow, clock.Duration(res.VirtualNS), res.Engine.FrameHops, res.Engine.Windows)
	}
	return canonical(res), res, nil
}

// canonical is the result without what may differ: costs.
func canonical(res *report.Result) []byte {
	r := *res
	r.Engine = report.Engine{FrameHops: res.Engine.FrameHops, Events: res.Engine.Events}
	b, err := json.MarshalIndent(&r, "", " ")
	if err != nil {
		panic(err)
	}
	return b
}

// differs shows the first place where two results part.
func differs(got, want []byte) string {
	if string(got) == string(want) {
		return ""
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	part := func(b []byte) string { return string(b[max(0, i-150):min(len(b), i+80)]) }
	return fmt.Sprintf("result differs:\n%s\n---- want\n%s", part(got), part(want))
}

// resumed saves every device at a window, restores them into a fresh fabric
// and runs that to the end.
func resumed(plan *topology.Plan, at uint64) ([]byte, error) {
	ctx := context.Background()
	a, err := sim.Build(plan, nil, 1)
	if err != nil {
		return nil, err
	}
	for range at {
		if _, err := a.Engine.Step(ctx); err != nil {
			return nil, err
		}
	}
	b, err := sim.Build(plan, nil, 1)
	if err != nil {
		return nil, err
	}
	for d := range plan.Devices {
		var w, again snap.Writer
		a.Engine.SnapshotDevice(int32(d), &w)
		if err := b.Engine.RestoreDevice(int32(d), &snap.Reader{B: w.B}); err != nil {
			return nil, err
		}
		b.Engine.SnapshotDevice(int32(d), &again)
		if string(again.B) != string(w.B) {
			return nil, fmt.Errorf("%s: %d bytes saved, other %d bytes after restore", plan.Devices[d].Name, len(w.B), len(again.B))
		}
	}
	b.Engine.SetClock(a.Engine.Now(), a.Engine.Windows())
	res, err := b.Engine.Run(ctx)
	if err != nil {
		return nil, err
	}
	return canonical(b.Finish(res, b.Parts(res.Instant()), report.Engine{})), nil
}

// sprays: with cables that differ, frames of one flow are faster than any way.
func sprays(plan *topology.Plan) bool {
	for i := range plan.Devices {
		if s := plan.Devices[i].Switch; s != nil && s.ECMP.Spray {
			return true
		}
	}
	return false
}

// plausible checks what holds for every result; on a lossless fabric with
// enough headroom and no faults, no frame of a lossless class is dropped.
func plausible(plan *topology.Plan, r *report.Result, lossy bool) error {
	if n := r.Totals.DropsByReason; !lossy && n["buffer_headroom"]+n["buffer_shared"]+n["headroom_pool"]+n["no_route"]+n["mtu"]+n["crc"]+n["rx_overflow"] > 0 {
		return fmt.Errorf("lossless, but drops %v", n)
	}
	var flows int64
	for name, l := range r.Flows {
		if l.Completed+l.Failed > l.Requests {
			return fmt.Errorf("%s: %d completed and %d failed of %d", name, l.Completed, l.Failed, l.Requests)
		}
		var n int64
		for _, c := range l.Statuses {
			n += c
		}
		if n != l.Completed+l.Failed && n != l.Requests {
			return fmt.Errorf("%s: statuses %v, %d completed and %d failed of %d", name, l.Statuses, l.Completed, l.Failed, l.Requests)
		}
		if r.Verdict == report.Complete && plan.Run.Until == topology.UntilIdle && l.Completed+l.Failed != l.Requests {
			return fmt.Errorf("%s: complete with %d completed and %d failed of %d", name, l.Completed, l.Failed, l.Requests)
		}
		if l.Slowdown != nil && l.Slowdown.Min < 0.98 && len(plan.Faults) == 0 && !sprays(plan) {
			return fmt.Errorf("%s: %.4f times as long as on an idle fabric", name, l.Slowdown.Min)
		}
		flows += l.Flows
	}
	if r.Totals.Flows != flows || r.Totals.Completed+r.Totals.Failed > flows {
		return fmt.Errorf("totals %+v, %d flows in all lines", r.Totals, flows)
	}
	var drops uint64
	for _, n := range r.Totals.DropsByReason {
		drops += n
	}
	if drops != r.Totals.DroppedFrames {
		return fmt.Errorf("%d drops by reason, %d in all", drops, r.Totals.DroppedFrames)
	}
	switch r.Verdict {
	case report.Complete, report.Limit, report.Stalled:
		return nil
	}
	return fmt.Errorf("verdict %s: %s", r.Verdict, r.VerdictReason)
}
