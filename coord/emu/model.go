// Package emu binds the control plane to the emulator: it resolves a submitted
// fabric with topology, hosts its devices with sim, and makes one result of
// what the processes of a run stored. Start at [Model].
package emu

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/telemetry/split"
	"github.com/rocemu/rocemu/topology"
)

// Model implements coord.Model. Plans are kept by run, since resolving a large
// fabric takes a second and several slots may share it.
type Model struct {
	mu    sync.Mutex
	plans []kept
}

type kept struct {
	run  string
	plan *topology.Plan
}

// keepPlans bounds the cache; a plan of thousands of RNICs takes 100 MB.
const keepPlans = 2

// Plan resolves a submitted run.
func (m *Model) Plan(s *coord.RunSpec) (*topology.Plan, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.plans {
		if k.run == s.ID {
			return k.plan, nil
		}
	}
	p, err := resolve(s)
	if err != nil {
		return nil, err
	}
	if s.ID != "" {
		m.plans = append(m.plans, kept{s.ID, p})
		if len(m.plans) > keepPlans {
			m.plans = m.plans[1:]
		}
	}
	return p, nil
}

// Know gives the model a plan that is resolved already, for a run to be
// submitted from this process.
func (m *Model) Know(run string, p *topology.Plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.plans = append(m.plans, kept{run, p})
}

func resolve(s *coord.RunSpec) (*topology.Plan, error) {
	srcs := make([]topology.Source, 0, len(s.Files))
	for _, f := range s.Files {
		srcs = append(srcs, topology.Source{Name: f.Name, Text: []byte(f.Text)})
	}
	p, _, err := topology.Resolve(srcs, s.Set, s.Seed, nil)
	return p, err
}

// Layout implements coord.Model: a leaf and its RNICs are a group, every spine
// and core is one.
func (m *Model) Layout(s *coord.RunSpec) (*coord.Layout, error) {
	p, err := m.Plan(s)
	if err != nil {
		return nil, err
	}
	l := &coord.Layout{Hash: hex.EncodeToString(p.Hash[:]), Window: p.Window, End: clock.Time(0).Add(p.Run.Limit)}
	if p.Run.Until == topology.UntilTime {
		l.End = min(l.End, p.Run.At)
	}
	racks := map[int32]int{}
	for i := range p.Devices {
		d := &p.Devices[i]
		l.Names = append(l.Names, d.Name)
		w := int64(0)
		for k := range d.Ports {
			w += int64(d.Ports[k].Rate / clock.Gbps)
		}
		g := -1
		if d.Kind == topology.Leaf || d.Kind == topology.RNIC {
			if k, ok := racks[d.Rack]; ok {
				g = k
			}
		}
		if g < 0 {
			g = len(l.Groups)
			l.Groups = append(l.Groups, coord.Group{})
			if d.Kind == topology.Leaf || d.Kind == topology.RNIC {
				racks[d.Rack] = g
			}
		}
		l.Groups[g].Devices = append(l.Groups[g].Devices, int32(i))
		l.Groups[g].Weight += max(1, w)
	}
	return l, nil
}

// Fault parses and binds the text of a live fault.
func Fault(p *topology.Plan, f *coord.Fault) (*topology.Fault, error) {
	parse := topology.ParseFault
	if f.Set {
		parse = topology.ParseSet
	}
	x, err := parse(f.Text)
	if err != nil {
		return nil, err
	}
	if err := p.BindFault(x); err != nil {
		return nil, err
	}
	x.Name, x.At = f.Name, f.Eff
	if f.For > 0 {
		x.For = f.For
	}
	return x, nil
}

// CheckFaults implements coord.Model.
func (m *Model) CheckFaults(s *coord.RunSpec, live, come []coord.Fault) error {
	p, err := m.Plan(s)
	if err != nil {
		return err
	}
	var edits []func(*topology.Timeline) error
	for i := range come {
		f := &come[i]
		edit, err := checkFault(p, live, f, len(p.Faults)+len(live)+i)
		if err != nil && len(come) > 1 {
			err = fmt.Errorf("%q: %w", cmp.Or(f.Text, f.Name), err)
		}
		if err != nil {
			return err
		}
		if edit != nil {
			edits = append(edits, edit)
		}
	}
	if len(edits) == 0 {
		return nil
	}
	t, err := changes(p, live)
	if err != nil {
		return err
	}
	return t.Together(func() error {
		for _, edit := range edits {
			if err := edit(t); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkFault looks at a fault by itself. It returns what the fault does to the
// settings in force, nil = nothing; index is its place behind the others.
func checkFault(p *topology.Plan, live []coord.Fault, f *coord.Fault, index int) (func(*topology.Timeline) error, error) {
	if f.Clear {
		i := slices.IndexFunc(live, func(x coord.Fault) bool { return !x.Clear && x.Name == f.Name })
		if i < 0 {
			return nil, nil // a name that there is none of is the ledger's to refuse
		}
		return func(t *topology.Timeline) error { return t.End(int32(len(p.Faults)+live[i].Index), f.Eff) }, nil
	}
	x, err := Fault(p, f)
	if err != nil {
		return nil, err
	}
	if err := comes(p, f.Want); err != nil || x.Kind != topology.SetKind {
		return nil, err
	}
	return func(t *topology.Timeline) error { return t.Add(x, int32(index)) }, nil
}

// changes is what a run's settings are by its file and what was changed live.
func changes(p *topology.Plan, live []coord.Fault) (*topology.Timeline, error) {
	t := topology.NewTimeline(p)
	err := t.Together(func() error {
		for i := range p.Faults {
			if c := &p.Faults[i]; c.Kind == topology.SetKind {
				if err := t.Add(c, int32(i)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.Live = true // each was checked before
	defer func() { t.Live = false }()
	// Together: those of one instant may not fit one by one.
	return t, t.Together(func() error { return wereMade(t, p, live) })
}

// wereMade adds and ends what was changed live.
func wereMade(t *topology.Timeline, p *topology.Plan, live []coord.Fault) error {
	for i := range live {
		f := &live[i]
		index := int32(len(p.Faults) + f.Index)
		if f.Clear {
			if err := t.End(index, f.Eff); err != nil {
				return err
			}
			continue
		}
		x, err := Fault(p, f)
		if err != nil || x.Kind != topology.SetKind {
			continue
		}
		if err := t.Add(x, index); err != nil {
			return err
		}
	}
	return nil
}

// comes says why a run does not come to an instant.
func comes(p *topology.Plan, at clock.Time) error {
	end, what := p.Run.At, "run.until"
	if end == 0 {
		end, what = clock.Time(0).Add(p.Run.Limit), "run.limit"
	}
	if at < end || end == 0 {
		return nil
	}
	return fmt.Errorf("the run ends at %v (%s) at the latest and does not come to %v: ask for an earlier time, or for none", end, what, at)
}

// Build implements coord.Model.
func (m *Model) Build(s *coord.RunSpec, hosted func(int32) bool, workers int) (coord.Fabric, error) {
	p, err := m.Plan(s)
	if err != nil {
		return nil, err
	}
	own := *p // live faults are added to a copy
	own.Faults = slices.Clip(own.Faults)
	mine := 0
	for d := range own.Devices {
		if hosted(int32(d)) {
			mine++
		}
	}
	built, end := sim.Ease(mine, len(own.Devices))
	f, err := sim.Build(&own, hosted, max(1, workers))
	if err != nil {
		end()
		return nil, err
	}
	built()
	x := &share{f: f, base: len(p.Faults), end: end}
	x.notes.begin(&own, s.Series || p.Telem.Interval > 0)
	if s.Batch { // live ones stop at any window
		f.Engine.Stride = sim.Stride(&own)
	}
	if w := split.New(p); w != nil && s.Splits {
		x.notes.spotter.taps = w.Tap(f)
	}
	f.Engine.Observe = x.observe
	return x, nil
}

var _ coord.Model = (*Model)(nil)
