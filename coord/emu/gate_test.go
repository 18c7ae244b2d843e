package emu_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/coord/emu"
)

// asking looks at a share's notes wherever its engine may wait for a grant.
type asking struct {
	*testing.T
	fab coord.Fabric
	m   *emu.Notes
}

func (g *asking) Await(_ context.Context, e *actors.Engine, start, _ clock.Time) (clock.Time, error) {
	arg, err := json.Marshal(g.m.Cursor(0))
	if err != nil {
		return 0, err
	}
	b, err := g.fab.(coord.Looker).Look(emu.AskNotes, arg, start, e.Windows())
	if err != nil {
		return 0, err
	}
	return clock.Never, g.m.Take([]coord.Seen{{Body: b}}, nil)
}

// An engine that waits has yet to note what comes before its next window: an
// answer given then is not complete up to it, and a watcher loses nothing.
func TestNotesWhileWaiting(t *testing.T) {
	want := alone(t)
	fab, err := new(emu.Model).Build(&coord.RunSpec{Files: []coord.File{{Name: "lossy.yaml", Text: lossy}}, Series: true}, func(int32) bool { return true }, 1)
	if err != nil {
		t.Fatal(err)
	}
	e, got := fab.Engine(), &watched{}
	defer e.Close()
	g := &asking{t, fab, got.notes(plan(t), 1)}
	e.Gate = g
	res, err := e.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fab.Parts(res.At, res.LastWork); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Await(t.Context(), e, res.At, clock.Never); err != nil { // the end's
		t.Fatal(err)
	}
	if len(got.batches) < 3 || !slices.Equal(slices.Concat(got.batches...), slices.Concat(want.batches...)) {
		t.Errorf("%d batches of records, one process had %d", len(got.batches), len(want.batches))
	}
}
