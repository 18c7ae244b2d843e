package sim_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

// saved runs a fabric to an instant and carries its state through bytes.
func saved(t *testing.T, p *topology.Plan, at clock.Time) *sim.Saved {
	t.Helper()
	f, err := sim.Build(p, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	held, res, err := f.RunTo(context.Background(), at)
	if err != nil || !held || res.At != at {
		t.Fatalf("held %v at %v, want %v: %v", held, res.At, at, err)
	}
	var b bytes.Buffer
	if _, err := f.Save().WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	s, err := sim.ReadSaved(&b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSavedFabricGoesOn: a fabric saved at an exact instant, between any two
// windows, ends as the uninterrupted run, from the saved text alone.
func TestSavedFabricGoesOn(t *testing.T) {
	for name := range fabrics {
		p := load(t, name)
		want := run(t, p, 1)
		s := saved(t, p, clock.Time(want.VirtualNS)/3+1)
		q, err := s.Plan()
		if err != nil {
			t.Fatal(err)
		}
		r, err := sim.Run(context.Background(), q, sim.Options{Workers: 2, OnBuild: func(f *sim.Fabric) error { return f.Restore(s) }})
		if err != nil {
			t.Fatal(err)
		}
		if r.Digest != want.Digest || r.VirtualNS != want.VirtualNS || r.Totals.Completed != want.Totals.Completed {
			t.Errorf("%s: digest %s at %v, want %s at %v", name, r.Digest, r.VirtualNS, want.Digest, want.VirtualNS)
		}
	}
}

// TestWhatIf restores into other settings: the past is kept, the future
// differs, frames are conserved.
func TestWhatIf(t *testing.T) {
	p := load(t, "incast")
	s := saved(t, p, clock.Time(100*clock.Microsecond))
	q := load(t, "incast", "switches.all.ecn.kmin=1KB", "switches.all.ecn.kmax=2KB")
	r, err := sim.Run(context.Background(), q, sim.Options{Workers: 1, OnBuild: func(f *sim.Fabric) error { return f.Restore(s) }})
	if err != nil {
		t.Fatal(err)
	}
	base := run(t, p, 1)
	if r.Verdict != report.Complete || r.Totals.ECNMarked <= base.Totals.ECNMarked {
		t.Errorf("%s (%s), %d marks, %d without the change", r.Verdict, r.VerdictReason, r.Totals.ECNMarked, base.Totals.ECNMarked)
	}
	other := load(t, "ties")
	f, err := sim.Build(other, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Restore(s); err == nil || !strings.Contains(err.Error(), "devices") {
		t.Errorf("another fabric was restored: %v", err)
	}
}

func TestReadSavedRefuses(t *testing.T) {
	var b bytes.Buffer
	if _, err := saved(t, load(t, "incast"), clock.Time(50*clock.Microsecond)).WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	good := b.Bytes()
	for _, cut := range []int{0, 5, 40, 100, len(good) - 1} {
		if _, err := sim.ReadSaved(bytes.NewReader(good[:cut])); err == nil {
			t.Errorf("%d of %d bytes were accepted", cut, len(good))
		}
	}
	for _, i := range []int{0, 9, 20, 60, len(good) / 2, len(good) - 1} {
		bad := bytes.Clone(good)
		bad[i] ^= 4
		if _, err := sim.ReadSaved(bytes.NewReader(bad)); err == nil {
			t.Errorf("a flipped bit in byte %d was accepted", i)
		}
	}
}
