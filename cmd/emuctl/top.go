package main

import (
	"context"
	"errors"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

type topFlags struct {
	File  []string `flag:"file,f" help:"fabric file to run (repeatable, later ones overlay)"`
	Set   []string `flag:"set" help:"override one value: path=value (repeatable)"`
	Every string   `flag:"every" help:"time between two pictures: virtual with -f, wall of a running fabric (default 1s)"`
	clusterFlags
}

func (a *app) top() *cobra.Command {
	var f topFlags
	return a.command(verb{
		use: "top [-f FILE] [--every 100us] [--nats URL --creds FILE]", short: "Watch a run: links by load, queues by depth, pauses, queue pairs in trouble",
		long: `Runs the fabric of -f and shows it while it runs. p holds and resumes the run, n
advances it by one picture, q ends it. Without a terminal the last picture is printed.
Without -f it shows a cluster's current run; p pauses and resumes that one, q only
ends the view.`,
		example: "  emuctl top -f examples/incast.yaml --every 10us",
		args:    cobra.NoArgs, flags: &f,
		run: func(ctx context.Context, _ []string) error { return a.runTop(ctx, &f) },
	})
}

func (a *app) runTop(ctx context.Context, f *topFlags) error {
	if len(f.File) == 0 {
		return a.liveTop(ctx, f)
	}
	if f.Every == "" {
		f.Every = "100us"
	}
	span, err := time.ParseDuration(f.Every)
	if err != nil || span <= 0 {
		return errors.New("top: --every " + f.Every + ": want a virtual time such as 100us")
	}
	l, err := load(f.File, f.Set, nil)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := newTopRun(l.plan, clock.Duration(span)*clock.Nanosecond)
	if !a.outTTY {
		res, err := sim.Run(ctx, l.plan, t.options(func(picture) {}))
		if err != nil {
			return err
		}
		return a.printf("%s", t.last.draw(100, 60, res.Verdict))
	}
	p := tea.NewProgram(&topModel{run: t}, tea.WithContext(ctx), tea.WithOutput(a.out))
	go func() {
		res, err := sim.Run(ctx, l.plan, t.options(func(v picture) { p.Send(v) }))
		p.Send(topDone{res, err})
	}()
	_, err = p.Run()
	t.release()
	return err
}

// topRun feeds pictures of a run, and holds it when asked.
type topRun struct {
	plan    *topology.Plan
	every   clock.Duration
	cur     *counters.Snapshot
	last    picture
	trouble map[string]*trouble
	gate    chan struct{} // a token lets a held run advance by one picture
	held    chan bool     // of capacity 1: whether it is held
}

func newTopRun(plan *topology.Plan, every clock.Duration) *topRun {
	t := &topRun{plan: plan, every: every, trouble: map[string]*trouble{}, gate: make(chan struct{}, 1), held: make(chan bool, 1)}
	t.held <- false
	return t
}

// hold stops or resumes the run at its next picture.
func (t *topRun) hold(on bool) {
	<-t.held
	t.held <- on
	if !on {
		t.step()
	}
}

func (t *topRun) step() {
	select {
	case t.gate <- struct{}{}:
	default:
	}
}

// release lets a held run go to its end.
func (t *topRun) release() { t.hold(false) }

func (t *topRun) options(show func(picture)) sim.Options {
	return sim.Options{
		Records: t.records,
		Sampler: sim.Every(t.every),
		Sample: func(at clock.Time, f *sim.Fabric) {
			s := &counters.Snapshot{}
			f.Snapshot(at, s)
			t.last = picture{plan: t.plan, before: t.cur, now: s, hops: f.Engine.Totals().Hops, trouble: t.worst()}
			t.cur = s
			show(t.last)
			on := <-t.held
			t.held <- on
			if on {
				<-t.gate
			}
		},
	}
}

// records counts what goes wrong, by queue pair.
func (t *topRun) records(batch []record.Record) {
	for i := range batch {
		r := &batch[i]
		switch r.Kind {
		case record.Timeout, record.NakRecv, record.RnrRecv, record.ImpliedNak, record.QPError, record.Retransmit:
			t.count(r)
		}
	}
}

// topDone says that the run has ended.
type topDone struct {
	res *report.Result
	err error
}

// steered is a run that can be held.
type steered interface {
	hold(on bool)
	step()
}

// topModel is the terminal's side.
type topModel struct {
	run    steered
	pic    picture
	w, h   int
	held   bool
	status string
	err    error
}

func (m *topModel) Init() tea.Cmd { return nil }

func (m *topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
	case picture:
		m.pic = msg
	case topDone:
		if m.err = msg.err; m.err != nil {
			return m, tea.Quit
		}
		m.status = "ended, q ends the view"
		if msg.res != nil {
			m.status = msg.res.Verdict + ", q ends"
		}
	case tea.KeyPressMsg:
		switch msg.String() {
		case "q", "ctrl+c", "esc":
			return m, tea.Quit
		case "p", "space":
			m.held = !m.held
			m.run.hold(m.held)
		case "n":
			if m.held {
				m.run.step()
			}
		}
	}
	return m, nil
}

func (m *topModel) View() tea.View {
	status := m.status
	if status == "" {
		status = "running, p holds"
		if m.held {
			status = "held: p resumes, n advances"
		}
	}
	w, h := m.w, m.h
	if w == 0 { // it has not said yet
		w, h = 80, 24
	}
	v := tea.NewView(strings.TrimSuffix(m.pic.draw(w, h, status), "\n"))
	v.AltScreen = true
	return v
}
