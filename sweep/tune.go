package sweep

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/rocemu/rocemu/topology"
)

// Param is a watermark that the search may turn: an exponent of two around a
// base, so that each step is a factor.
type Param struct {
	Path string `json:"path"`
	Unit string `json:"unit"` // "" for alpha, "B", "p" for a probability
	Base float64
	Lo   int // bounds of the exponent in half steps
	Hi   int
}

// at is the parameter's value n half steps of a factor of two from its base.
func (p *Param) at(n int) string {
	v := p.Base * math.Pow(2, float64(n)/2)
	switch p.Unit {
	case "":
		e := int(math.Round(math.Log2(v)))
		return new(big.Rat).SetFrac64(1<<max(e, 0), 1<<max(-e, 0)).RatString()
	case "p":
		return fmt.Sprintf("%.4g", min(v, 1))
	}
	return fmt.Sprintf("%dB", int64(math.Round(v)))
}

// step is the smallest number of half steps that changes the value.
func (p *Param) step() int {
	if p.Unit == "" {
		return 2 // the chips' alphas are powers of two
	}
	return 1
}

// Trial is one setting of all parameters with what it gave.
type Trial struct {
	At     []int    `json:"-"`
	Values []string `json:"values"` // parallel to the parameters
	Point
}

// Tuner searches the watermarks of a fabric for its own workload: a pattern
// search that tries every parameter one step up and down from the best setting
// so far, takes the best neighbour, and halves the step when none is better.
type Tuner struct {
	Load   Loader
	Scope  string // switches.all, switches.leaf, …
	Goal   Goal
	Seeds  int // runs a setting
	Budget int // runs in all, the final check apart
	Runs   int // done so far
	// Progress is called after each batch.
	Progress func(runs, budget int)

	Params []Param
	tried  map[string]*Trial
}

// Params of a fabric: what its first lossless switch port in scope has, as the
// place to start from. A static XOFF point and marking that is off are left
// alone.
func Params(plan *topology.Plan, scope string) ([]Param, error) {
	for i := range plan.Devices {
		d := &plan.Devices[i]
		if d.Switch == nil || !inScope(d, scope) {
			continue
		}
		for k := range d.Ports {
			p := &d.Ports[k]
			for prio := range 8 {
				if p.PFC.Lossless[prio] {
					return paramsOf(p, prio, scope), nil
				}
			}
		}
	}
	return nil, fmt.Errorf("no switch port of %s has a lossless class: there is nothing to tune", scope)
}

func inScope(d *topology.Device, scope string) bool {
	_, role, _ := strings.Cut(scope, ".")
	switch role {
	case "all":
		return true
	case "leaf":
		return d.Kind == topology.Leaf
	case "spine":
		return d.Kind == topology.Spine
	}
	return false
}

func paramsOf(p *topology.Port, prio int, scope string) []Param {
	var out []Param
	if p.PFC.XOFF[prio] == 0 {
		a := p.PFC.Alpha[prio]
		base := float64(a.Num) / float64(a.Den)
		e := int(math.Round(2 * math.Log2(base)))
		out = append(out, Param{scope + ".pfc.alpha", "", base, -14 - e, 6 - e})
	}
	out = append(out, Param{scope + ".pfc.xon_offset", "B", float64(max(p.PFC.XONOffset[prio], 1000)), -8, 8})
	if e := &p.ECN[p.QoS.TCToQueue[prio]]; e.On {
		pmax := float64(e.PMax) / (1 << 32)
		out = append(out,
			Param{scope + ".ecn.kmin", "B", float64(max(e.KMin, 1000)), -12, 10},
			Param{scope + ".ecn.kmax", "B", float64(max(e.KMax, 1000)), -12, 10},
			Param{scope + ".ecn.pmax", "p", max(pmax, 0.001), -14, int(math.Ceil(-2 * math.Log2(max(pmax, 0.001))))})
	}
	return out
}

// Search looks for the best setting and returns the start, the best, and the
// best's neighbours of the last round.
func (t *Tuner) Search(ctx context.Context) (start, best *Trial, near []*Trial, err error) {
	t.tried = map[string]*Trial{}
	at := make([]int, len(t.Params))
	first, err := t.batch(ctx, [][]int{at})
	if err != nil {
		return nil, nil, nil, err
	}
	start, best = first[0], first[0]
	for step := 4; step >= 1; {
		near, err = t.batch(ctx, t.neighbours(best.At, step))
		if err != nil {
			return nil, nil, nil, err
		}
		next := best
		for _, n := range near {
			if t.beats(n, next) {
				next = n
			}
		}
		if next == best {
			step /= 2
		}
		best = next
		if t.Runs+2*len(t.Params)*t.Seeds > t.Budget {
			return start, best, near, nil
		}
	}
	return start, best, near, nil
}

// neighbours are the settings one step of one parameter away, in bounds.
func (t *Tuner) neighbours(at []int, step int) [][]int {
	var out [][]int
	for i := range t.Params {
		p := &t.Params[i]
		for _, d := range []int{-max(step, p.step()), max(step, p.step())} {
			n := append([]int(nil), at...)
			if n[i] += d; n[i] < p.Lo || n[i] > p.Hi {
				continue
			}
			if t.sane(n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// sane keeps Kmin below Kmax.
func (t *Tuner) sane(at []int) bool {
	var kmin, kmax float64
	for i := range t.Params {
		v := t.Params[i].Base * math.Pow(2, float64(at[i])/2)
		switch {
		case strings.HasSuffix(t.Params[i].Path, ".kmin"):
			kmin = v
		case strings.HasSuffix(t.Params[i].Path, ".kmax"):
			kmax = v
		}
	}
	return kmin <= kmax
}

// beats asks for a gain of half a percent, so that the search does not walk
// along noise; less loss or fewer failures always count.
func (t *Tuner) beats(a, b *Trial) bool {
	if a.OK != b.OK {
		return a.OK
	}
	if (a.Drops == 0) != (b.Drops == 0) || a.Drops > 0 && a.Drops != b.Drops {
		return a.Drops < b.Drops
	}
	const gain = 0.995
	switch t.Goal {
	case HighestGoodput:
		return b.Goodput.Mean < a.Goodput.Mean*gain
	case LeastPause:
		return a.Pause.Mean < b.Pause.Mean*gain
	case ShortestCompletion:
		return a.Completion.Mean < b.Completion.Mean*gain
	}
	return a.P99.Mean < b.P99.Mean*gain
}

// Values are the settings' texts.
func (t *Tuner) Values(at []int) []string {
	out := make([]string, len(at))
	for i := range at {
		out[i] = t.Params[i].at(at[i])
	}
	return out
}

// sets are the settings that differ from the file: what is not turned stays as
// it is there, also where devices differ.
func (t *Tuner) sets(at []int) []string {
	var out []string
	for i, n := range at {
		if n != 0 {
			out = append(out, t.Params[i].Path+"="+t.Params[i].at(n))
		}
	}
	return out
}

// Reach turns every parameter and looks which ports follow. What no port
// follows is taken out of the search, because a narrower section of the file
// sets it; the notes say so, and where only some follow.
func (t *Tuner) Reach() (notes []string, err error) {
	at := make([]int, len(t.Params))
	for i := range at {
		if at[i] = -t.Params[i].step(); at[i] < t.Params[i].Lo {
			at[i] = t.Params[i].step()
		}
	}
	plan, err := t.Load(t.sets(at), nil)
	if err != nil {
		return nil, err
	}
	follow, all := make([]int, len(at)), 0
	for i := range plan.Devices {
		d := &plan.Devices[i]
		if d.Switch == nil || !inScope(d, t.Scope) {
			continue
		}
		for k := range d.Ports {
			for prio := range 8 {
				if !d.Ports[k].PFC.Lossless[prio] {
					continue
				}
				all++
				for _, p := range paramsOf(&d.Ports[k], prio, t.Scope) {
					for n := range t.Params {
						want := t.Params[n].Base * math.Pow(2, float64(at[n])/2)
						if p.Path == t.Params[n].Path && math.Abs(p.Base/want-1) < 0.01 {
							follow[n]++
						}
					}
				}
			}
		}
	}
	var kept []Param
	for n, p := range t.Params {
		switch {
		case follow[n] == 0:
			notes = append(notes, p.Path+" reaches no port: a narrower section of the file, or its asic profile, sets it; try --scope switches.leaf or switches.spine")
			continue
		case follow[n] < all:
			notes = append(notes, fmt.Sprintf("%s reaches %d of %d lossless groups; the others keep their own", p.Path, follow[n], all))
		}
		kept = append(kept, p)
	}
	t.Params = kept
	if len(kept) == 0 {
		return notes, fmt.Errorf("nothing to tune: %s", strings.Join(notes, "; "))
	}
	return notes, nil
}

// batch runs settings, each under all seeds, all at once; known ones are not
// run again.
func (t *Tuner) batch(ctx context.Context, at [][]int) ([]*Trial, error) {
	out := make([]*Trial, len(at))
	var fresh []*Trial
	for i, n := range at {
		v := t.Values(n)
		key := strings.Join(v, " ")
		if t.tried[key] == nil {
			t.tried[key] = &Trial{At: n, Values: v}
			fresh = append(fresh, t.tried[key])
		}
		out[i] = t.tried[key]
	}
	t.Runs += len(fresh) * t.Seeds
	if err := t.run(ctx, fresh, 0, t.Seeds); err != nil {
		return nil, err
	}
	if t.Progress != nil {
		t.Progress(t.Runs, t.Budget)
	}
	return out, nil
}

// run simulates trials under seeds from the file's own + skip on.
func (t *Tuner) run(ctx context.Context, trials []*Trial, skip, seeds int) error {
	g := &Grid{Load: t.Load}
	var jobs []job
	for i, tr := range trials {
		plan, err := t.Load(t.sets(tr.At), nil)
		if err != nil {
			return err
		}
		tr.Point = Point{Values: tr.Values, Runs: make([]Run, seeds)}
		for s := range seeds {
			tr.Runs[s].Seed = plan.Seed + uint64(skip+s)
			jobs = append(jobs, job{i, s, t.sets(tr.At)})
		}
	}
	err := g.each(ctx, jobs, func(j job) error {
		r := &trials[j.point].Runs[j.seed]
		m, err := g.one(ctx, j.sets, r.Seed)
		r.Metrics = m
		return err
	})
	for _, tr := range trials {
		tr.summarise()
	}
	return err
}

// Check runs two settings under seeds that the search did not see.
func (t *Tuner) Check(ctx context.Context, a, b *Trial, seeds int) (ca, cb *Trial, err error) {
	ca, cb = &Trial{At: a.At, Values: a.Values}, &Trial{At: b.At, Values: b.Values}
	return ca, cb, t.run(ctx, []*Trial{ca, cb}, t.Seeds, seeds)
}

// Figure is what the goal measures of a run; less is better.
func (t *Tuner) Figure(m *Metrics) float64 {
	switch t.Goal {
	case HighestGoodput:
		return -float64(m.GoodputBP)
	case LeastPause:
		return m.PauseShare
	case ShortestCompletion:
		return float64(m.Completion)
	}
	return float64(m.P99)
}

// Over is the goal's figure over a trial's seeds.
func (t *Tuner) Over(tr *Trial) Spread { return spread(tr.Runs, t.Figure) }
