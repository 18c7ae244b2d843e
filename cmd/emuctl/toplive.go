package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord/client"
	"github.com/rocemu/rocemu/coord/emu"
	"github.com/rocemu/rocemu/report/counters"
)

// liveTop shows a cluster's current run.
func (a *app) liveTop(ctx context.Context, f *topFlags) error {
	if f.Every == "" {
		f.Every = "1s"
	}
	every, err := time.ParseDuration(f.Every)
	if err != nil || every < 50*time.Millisecond {
		return fmt.Errorf("top: --every %s: want a wall time of 50ms or more", f.Every)
	}
	return a.onRun(ctx, &f.clusterFlags, func(ctx context.Context, r *liveRun) error {
		t := &topLive{r: r, ctx: ctx, topRun: newTopRun(r.plan, 0), notes: emu.NewNotes(r.plan, len(r.st.Slots))}
		t.notes.Records = t.records
		first, err := t.picture()
		if err != nil {
			return err
		}
		if !a.outTTY {
			return a.printf("%s", first.draw(100, 60, r.st.State))
		}
		p := tea.NewProgram(&topModel{run: t, pic: first}, tea.WithContext(ctx), tea.WithOutput(a.out))
		go t.pictures(every, p)
		_, err = p.Run()
		return err
	})
}

// topLive feeds pictures of a cluster's run. All but hold and step run in one
// goroutine.
type topLive struct {
	*topRun
	r     *liveRun
	ctx   context.Context
	notes *emu.Notes
}

// pictures feeds the terminal until the run ends.
func (t *topLive) pictures(every time.Duration, p *tea.Program) {
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-time.After(every):
		}
		pic, err := t.picture()
		switch {
		case err != nil && !errors.Is(err, client.ErrOver):
			p.Send(topDone{err: err})
			return
		case err != nil || t.r.ended():
			p.Send(topDone{})
			return
		}
		p.Send(pic)
	}
}

// picture looks at the run now. Records that do not come in time are in the
// next one.
func (t *topLive) picture() (picture, error) {
	s, _, err := t.r.counters(t.ctx)
	if err != nil {
		return picture{}, err
	}
	if !t.r.ended() {
		ctx, cancel := context.WithTimeout(t.ctx, 3*time.Second)
		defer cancel()
		seen, err := t.r.c.Look(ctx, len(t.r.st.Slots), t.notes.Ask(t.r.st.ID))
		if err == nil {
			err = t.notes.Take(seen, func(sum string) ([]byte, error) { return t.r.c.Blob(ctx, sum) })
		}
		if err != nil && !errors.Is(err, client.ErrIncomplete) {
			return picture{}, err
		}
	}
	if t.cur != nil && s.At == t.cur.At { // it stands: the last change stays in view
		t.last.now = s
		return t.last, nil
	}
	t.last = picture{plan: t.plan, before: t.cur, now: s, hops: frames(s), trouble: t.worst()}
	t.cur = s
	return t.last, nil
}

// frames counts what ports put onto cables.
func frames(s *counters.Snapshot) (n uint64) {
	for _, p := range s.Points {
		if p.ID == counters.TxFrames || p.ID == counters.RNICTxPackets {
			n += uint64(p.Value)
		}
	}
	return n
}

// hold pauses or resumes the run itself.
func (t *topLive) hold(on bool) {
	t.command(func(ctx context.Context) error {
		if on {
			_, err := t.r.c.Pause(ctx)
			return err
		}
		return t.r.c.Resume(ctx)
	})
}

// stepSpan is how far n lets a paused run go.
const stepSpan = 10 * clock.Microsecond

func (t *topLive) step() {
	t.command(func(ctx context.Context) error {
		_, err := t.r.c.Step(ctx, stepSpan)
		return err
	})
}

// command runs beside the view; what became of it shows there.
func (t *topLive) command(do func(ctx context.Context) error) {
	go func() {
		ctx, cancel := context.WithTimeout(t.ctx, 5*time.Second)
		defer cancel()
		_ = do(ctx)
	}()
}
