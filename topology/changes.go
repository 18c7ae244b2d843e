package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rocemu/rocemu/clock"
)

// Changes of settings at a virtual time (`changes:` in a file, `emuctl set`).
// A change is a fault of kind "set": its target is the path of a setting, its
// parameter `to` the value. What is in force at an instant is the fabric file
// with the values of all changes that are active laid on it, in order of start,
// as --set does: of changes of one setting the last to start is in force, of those
// that start together the last in the list, and the end of a change brings back
// exactly what would be there without it.

// SetKind is the fault kind of a change of settings.
const SetKind = "set"

// bindSet looks a change up and checks its value by itself; whether it fits the
// rest of what is in force then, the timeline finds out.
func (p *Plan) bindSet(f *Fault) []*faultErr {
	f.Dev, f.Port, f.Cable, f.Peer = -1, 0, -1, -1
	devs, e := p.covers(f.Target)
	if e != nil {
		return []*faultErr{e}
	}
	f.Devs = devs
	if errs := p.trySet(f.Target + "=" + f.Params["to"]); len(errs) > 0 {
		if e := errs[0]; strings.HasPrefix(e.Msg, "unknown key") {
			return []*faultErr{{"set", e.Field, e.Msg, e.Hint}}
		}
		return []*faultErr{{"to", f.Params["to"], errs[0].Msg, errs[0].Hint}}
	}
	return nil
}

// CheckSet looks at one PATH=VALUE by itself, as if laid on the plan's file:
// whether the key exists and the value is of its kind, not whether it fits the
// rest.
func (p *Plan) CheckSet(set string) error {
	if errs := p.trySet(set); len(errs) > 0 {
		return errs.sorted()
	}
	return nil
}

func (p *Plan) trySet(set string) Errors {
	root, errs := applySet(p.root, set, 1)
	if len(errs) == 0 {
		c := &checker{}
		c.check(root, fileSpec(), "")
		for _, e := range c.errs { // those of the file are told elsewhere
			if strings.HasPrefix(e.File, "--set ") {
				errs = append(errs, e)
			}
		}
	}
	return errs
}

// checkChanges resolves what is in force at each start and end of the file's
// changes; at holds their places by index.
func (r *resolver) checkChanges(at map[int]*node) {
	t := NewTimeline(r.plan)
	for i := range r.plan.Faults {
		if f := &r.plan.Faults[i]; f.Kind == SetKind {
			t.insert(f, int32(i))
		}
	}
	if len(t.all) == 0 || len(r.errs) > 0 {
		return
	}
	if c, err := t.rebuild(); err != nil {
		n := at[int(c)]
		r.fail(n, "changes."+clip(r.plan.Faults[c].Name), r.plan.Faults[c].Params["to"], err.Error(), "")
	}
}

// Variant resolves the devices of the plan's file with settings laid on it,
// PATH=VALUE each. Workload and faults are left out.
func (p *Plan) Variant(sets []string) (*Plan, error) {
	r := &resolver{plan: &Plan{}, root: p.root}
	for i, s := range sets {
		root, errs := applySet(r.root, s, i+1)
		r.root = root
		r.errs = append(r.errs, errs...)
	}
	r.check(r.root, fileSpec(), "")
	v := r.plan
	v.Name, v.Seed, v.root = p.Name, p.Seed, r.root
	if len(r.errs) == 0 && r.buildTopology() {
		v.byName = r.dev
		r.switches()
		r.rnics()
		if len(r.errs) == 0 {
			r.couple()
		}
	}
	if len(r.errs) > 0 {
		for _, e := range r.errs { // a change is not a flag
			e.File, e.Msg = strings.TrimPrefix(e.File, "--"), strings.ReplaceAll(e.Msg, " --set ", " set ")
		}
		return nil, r.errs.sorted()
	}
	return v, nil
}

// Timeline is what is in force when, as the changes of a run have it.
type Timeline struct {
	base   *Plan
	all    []change // by (start, index)
	stages []stage  // by time
	cache  map[string]*Plan

	unjudged bool // more is to come

	// Live lets a change that does not fit the others wait: it is in force from
	// when it does. Two commands that were checked before either was known must
	// not end a run. What is in force follows from the changes alone, whatever
	// the order in which they were added.
	Live bool
}

type change struct {
	index     int32
	set       string
	at, until clock.Time
}

type stage struct {
	at   clock.Time
	plan *Plan
}

// NewTimeline is the timeline without changes.
func NewTimeline(p *Plan) *Timeline { return &Timeline{base: p, cache: map[string]*Plan{"": p}} }

// Add takes a change in. Its start must not have been passed.
func (t *Timeline) Add(f *Fault, index int32) error {
	had := slices.Clone(t.all)
	t.insert(f, index)
	if _, err := t.rebuild(); err != nil {
		t.all = had
		return err
	}
	return nil
}

func (t *Timeline) insert(f *Fault, index int32) {
	c := change{index: index, set: f.Target + "=" + f.Params["to"], at: f.At, until: clock.Never}
	if f.For > 0 {
		c.until = f.At.Add(f.For)
	}
	t.all = slices.DeleteFunc(t.all, func(x change) bool { return x.index == index })
	t.all = append(t.all, c)
	slices.SortFunc(t.all, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.index, b.index)) })
}

// End lets a change end at an instant, at its start if that lies behind it. When
// what is left does not resolve, it stays.
func (t *Timeline) End(index int32, at clock.Time) error {
	for i := range t.all {
		if c := &t.all[i]; c.index == index && at < c.until {
			had := c.until
			c.until = max(at, c.at)
			if _, err := t.rebuild(); err != nil {
				c.until = had
				return err
			}
			return nil
		}
	}
	return nil
}

// Together adds and ends several changes, which are judged as a whole: one may
// need the other. When what there is then does not resolve, none is made.
func (t *Timeline) Together(edit func() error) error {
	had := slices.Clone(t.all)
	t.unjudged = true
	err := edit()
	t.unjudged = false
	if err == nil && !slices.Equal(t.all, had) {
		_, err = t.rebuild()
	}
	if err != nil {
		t.all = had
	}
	return err
}

// At returns the plan whose devices' settings are in force at an instant.
func (t *Timeline) At(now clock.Time) *Plan {
	p := t.base
	for i := range t.stages {
		if t.stages[i].at > now {
			break
		}
		p = t.stages[i].plan
	}
	return p
}

// rebuild resolves what is in force from each start and end on. When that
// fails it names a change that starts or ends there, and nothing is different.
func (t *Timeline) rebuild() (index int32, err error) {
	if t.unjudged {
		return 0, nil
	}
	var times []clock.Time
	for _, c := range t.all {
		times = append(times, c.at, c.until)
	}
	slices.Sort(times)
	var stages []stage
	for _, at := range slices.Compact(times) {
		if at == clock.Never {
			break
		}
		p, err := t.resolve(at)
		if err != nil {
			for _, c := range t.all {
				if c.at == at || c.until == at {
					index = c.index
				}
			}
			return index, fmt.Errorf("the settings in force at %v: %w", at, err)
		}
		stages = append(stages, stage{at, p})
	}
	t.stages = stages
	return 0, nil
}

func (t *Timeline) resolve(at clock.Time) (*Plan, error) {
	var sets []string
	for _, c := range t.all {
		if c.at <= at && at < c.until {
			sets = append(sets, c.set)
		}
	}
	key := strings.Join(sets, "\n")
	if p := t.cache[key]; p != nil {
		return p, nil
	}
	p, err := t.base.Variant(sets)
	if err != nil && t.Live {
		p, err = t.fitting(sets), nil
	}
	if err == nil {
		t.cache[key] = p
	}
	return p, err
}

// fitting lays those of the settings, in their order, that fit the ones before.
func (t *Timeline) fitting(sets []string) *Plan {
	var in []string
	p := t.base
	for _, s := range sets {
		if v, err := t.base.Variant(append(in, s)); err == nil {
			in, p = append(in, s), v
		}
	}
	return p
}

// ParseSet reads PATH=VALUE as a change; names in it are not looked up.
func ParseSet(s string) (*Fault, error) {
	path, val, ok := strings.Cut(s, "=")
	if !ok || path == "" || val == "" {
		return nil, fmt.Errorf("set %q: must be PATH=VALUE, such as switches.leaf.ecn.kmin=50KB", s)
	}
	return ParseFault(SetKind + " " + path + " to=" + strings.ReplaceAll(val, " ", ""))
}

// changeSpec is an item of `changes`.
func changeSpec() *spec {
	s := mapOf(key("name", sText, "name of the change"), key("set", sText, "path of a switch or RNIC setting"),
		key("to", &spec{kind: kText, orSeq: seqOf(sText)}, "value"), key("at", sDuration, "start; of changes of one setting the last to start is in force"), key("for", sDuration, "length; at its end what is there without the change is back"))
	s.orScalar = sExpr
	return s
}

// readChange makes a fault of an item of `changes`: a mapping, or the text
// PATH=VALUE at=… for=… name=….
func (r *resolver) readChange(n *node, field string) (*Fault, bool) {
	var f *Fault
	var errs []*faultErr
	switch n.kind {
	case nScalar:
		set, rest, _ := strings.Cut(strings.TrimSpace(n.text), " ")
		path, val, _ := strings.Cut(set, "=")
		f, errs = parseFaultText(SetKind + " " + path + " to=" + val + " " + rest)
	case nMap:
		if n.maimed() {
			return nil, false
		}
		kv := [][2]string{{"kind", SetKind}}
		for _, e := range n.keys {
			switch k := e.key; {
			case e.val.kind == nNull || changeSpec().find(k) == nil: // told
			case k == "set":
				kv = append(kv, [2]string{"target", text(e.val)})
			case e.val.kind == nSeq:
				kv = append(kv, [2]string{k, "[" + text(e.val) + "]"})
			default:
				kv = append(kv, [2]string{k, text(e.val)})
			}
		}
		f, errs = buildFault(kv)
	default:
		return nil, false
	}
	for _, e := range errs {
		if e.key == "target" {
			e.key = "set"
		}
		r.failFault(n, field, e)
	}
	return f, len(errs) == 0
}
