package coord

import (
	"encoding/json"
	"fmt"
	"sort"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
)

// Phase of a run.
type Phase string

// Phases.
const (
	Placing Phase = "placing" // waits for members
	Running Phase = "running"
	Ended   Phase = "done"
	Failed  Phase = "failed"
)

// State is what the ledger says. It changes only by Apply, which is pure: no
// clock, no random, no I/O; the same entries give the same state everywhere.
type State struct {
	Seq     uint64             `json:"seq"` // entries applied
	Members map[string]*Member `json:"members"`
	Run     *Run               `json:"run,omitempty"`
	Past    []*Run             `json:"past,omitempty"` // ended runs, oldest first
	Saved   []Saved            `json:"saved,omitempty"`
	Cmds    []string           `json:"cmds,omitempty"` // remembered commands, oldest first
	Results map[string]Result  `json:"results,omitempty"`
}

// Run is the current run.
type Run struct {
	Spec   RunSpec        `json:"spec"`
	Phase  Phase          `json:"phase"`
	Why    string         `json:"why,omitempty"`
	Hash   string         `json:"hash,omitempty"`   // of the plan, as the leader resolved it
	Window clock.Duration `json:"window,omitempty"` // of the plan; grants are counted in it
	End    clock.Time     `json:"end,omitempty"`    // no run of the plan goes beyond; 0 = not known
	Owner  []int32        `json:"owner,omitempty"`
	Slots  []Slot         `json:"slots,omitempty"`
	Grant  clock.Time     `json:"grant"`
	Paused bool           `json:"paused,omitempty"`
	StepTo clock.Time     `json:"step_to,omitempty"`
	Pace   Pace           `json:"pace"`
	Faults []Fault        `json:"faults,omitempty"`
	StopAt clock.Time     `json:"stop_at"`
	Plan   *Ckpt          `json:"plan,omitempty"`  // checkpoint under way
	Ckpts  []Ckpt         `json:"ckpts,omitempty"` // committed, oldest first
	Start  *Ckpt          `json:"start,omitempty"` // a snapshot the run began from
	Moves  int            `json:"moves"`           // times a slot changed its owner
}

// Saved is a named snapshot with what is needed to go on from it.
type Saved struct {
	Name  string  `json:"name"`
	Run   string  `json:"run"`
	Ckpt  Ckpt    `json:"ckpt"`
	Spec  RunSpec `json:"spec"`
	Owner []int32 `json:"owner"`
	Hash  string  `json:"hash"`
	Fault []Fault `json:"faults,omitempty"`
}

// Result answers one entry.
type Result struct {
	Err string     `json:"err,omitempty"`
	At  clock.Time `json:"at,omitempty"`
	Run string     `json:"run,omitempty"`
	Seq uint64     `json:"seq"`
	// Of a snapshot that was asked for: the run and the instant of the one whose
	// place it takes, "" = none.
	OldRun string     `json:"old_run,omitempty"`
	OldAt  clock.Time `json:"old_at,omitempty"`
}

// Bounds of the state.
const (
	maxCmds   = 4096
	maxPast   = 8
	maxCkpts  = 3
	maxFaults = 100_000
	maxSaved  = 64
)

// NewState is the empty ledger.
func NewState() *State {
	return &State{Members: map[string]*Member{}, Results: map[string]Result{}}
}

// Encode writes the state canonically (JSON sorts map keys).
func (s *State) Encode() ([]byte, error) { return json.Marshal(s) }

// DecodeState reads what Encode wrote.
func DecodeState(b []byte) (*State, error) {
	s := NewState()
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("coord: malformed ledger state: %w", err)
	}
	if s.Members == nil || s.Results == nil || len(s.Cmds) > maxCmds {
		return nil, fmt.Errorf("coord: malformed ledger state")
	}
	return s, nil
}

// Apply executes one entry. Whatever is refused changes nothing but the list
// of remembered commands.
func (s *State) Apply(e *Entry) Result {
	s.Seq++
	if e.Cmd != "" {
		if r, ok := s.Results[e.Cmd]; ok {
			return r
		}
	}
	r := s.apply(e)
	r.Seq = s.Seq
	if e.Cmd != "" {
		s.remember(e.Cmd, r)
	}
	return r
}

func (s *State) remember(cmd string, r Result) {
	if len(s.Cmds) == maxCmds {
		delete(s.Results, s.Cmds[0])
		s.Cmds = append(s.Cmds[:0], s.Cmds[1:]...)
	}
	s.Cmds = append(s.Cmds, cmd)
	s.Results[cmd] = r
}

func refuse(format string, a ...any) Result { return Result{Err: fmt.Sprintf(format, a...)} }

func (s *State) apply(e *Entry) Result {
	switch e.Kind {
	case KindSubmit:
		return s.submit(e)
	case KindMember:
		return s.member(e)
	case KindEvict:
		return s.evict(e)
	}
	if s.Run == nil {
		return refuse("no run is on the cluster")
	}
	if e.Run != "" && e.Run != s.Run.Spec.ID {
		return refuse("run %s is not current, %s is", e.Run, s.Run.Spec.ID)
	}
	if s.Run.Phase == Ended || s.Run.Phase == Failed {
		return refuse("run %s is over: %s", s.Run.Spec.ID, s.Run.Phase)
	}
	r := s.run(e)
	r.Run = s.Run.Spec.ID
	return r
}

func (s *State) run(e *Entry) Result {
	switch r := s.Run; e.Kind {
	case KindPlace:
		return r.place(e)
	case KindMove:
		return s.move(e)
	case KindWish:
		return s.wish(e)
	case KindGrant:
		return r.grant(e)
	case KindFault:
		return r.fault(e, s.Seq)
	case KindPause:
		r.Paused, r.StepTo = true, 0
		return Result{At: r.Grant}
	case KindResume:
		r.Paused, r.StepTo = false, 0
		return Result{At: r.Grant}
	case KindStep:
		r.Paused = true
		r.StepTo = max(r.Grant, r.StepTo).Add(clock.Duration(e.At))
		return Result{At: r.StepTo}
	case KindPace:
		if e.Pace == nil || e.Pace.Num < 0 || e.Pace.Den <= 0 {
			return refuse("a pace is a number of virtual seconds a second, not negative")
		}
		r.Pace = *e.Pace
		return Result{At: r.Grant}
	case KindStop:
		return r.stop(e)
	case KindCkptPlan:
		return s.ckptPlan(e)
	case KindCkptCommit:
		return s.ckptCommit(e)
	case KindRollback:
		if bad := r.superseded(e); bad != "" {
			return refuse("%s", bad)
		}
		return r.rollback(e)
	case KindDone:
		return s.done(e)
	case KindFail:
		if bad := r.superseded(e); bad != "" {
			return refuse("%s", bad)
		}
		s.over(Failed, e.Why)
		return Result{}
	}
	return refuse("entry kind %q is unknown", e.Kind)
}

func (s *State) submit(e *Entry) Result {
	switch {
	case e.Spec == nil || e.Spec.ID == "" || len(e.Spec.Files) == 0:
		return refuse("a run needs an id and a file")
	case s.Run != nil && s.Run.Phase != Ended && s.Run.Phase != Failed:
		return refuse("run %s is still %s: stop it first", s.Run.Spec.ID, s.Run.Phase)
	}
	r := &Run{Spec: *e.Spec, Phase: Placing, StopAt: clock.Never, Paused: e.Spec.Pause, Pace: Pace{0, 1}}
	if name := e.Spec.Restore; name != "" {
		sv := s.saved(name)
		if sv == nil {
			return refuse("no snapshot %q: snapshots are %v", name, s.savedNames())
		}
		c := sv.Ckpt
		r.Start = &c
		r.Spec.Files, r.Spec.Set, r.Spec.Seed = sv.Spec.Files, sv.Spec.Set, sv.Spec.Seed
		r.Owner, r.Hash = sv.Owner, sv.Hash
		r.Faults = append([]Fault(nil), sv.Fault...)
		for i := range r.Faults {
			r.Faults[i].Base = 0 // known from the start
		}
		r.Grant = c.reached()
	}
	if s.Run != nil {
		s.Past = append(s.Past, s.Run)
		if len(s.Past) > maxPast {
			s.Past = s.Past[1:]
		}
	}
	s.Run = r
	return Result{Run: r.Spec.ID}
}

func (s *State) saved(name string) *Saved {
	for i := range s.Saved {
		if s.Saved[i].Name == name {
			return &s.Saved[i]
		}
	}
	return nil
}

func (s *State) savedNames() []string {
	l := []string{}
	for i := range s.Saved {
		l = append(l, s.Saved[i].Name)
	}
	sort.Strings(l)
	return l
}

func (s *State) member(e *Entry) Result {
	if e.Member == nil || e.Member.Name == "" || e.Member.Boot == "" {
		return refuse("a member needs a name and a boot id")
	}
	m := *e.Member
	m.Up = true
	s.Members[m.Name] = &m
	return Result{}
}

func (s *State) evict(e *Entry) Result {
	m := s.Members[e.To]
	if m == nil || e.Name != "" && m.Boot != e.Name {
		return refuse("no member %s with boot %s", e.To, e.Name)
	}
	m.Up, m.Why = false, e.Why
	return Result{}
}

func (r *Run) place(e *Entry) Result {
	if r.Phase != Placing {
		return refuse("run %s is placed already", r.Spec.ID)
	}
	if len(e.Slots) == 0 || len(e.Owner) == 0 || e.Hash == "" {
		return refuse("a placement needs slots, owners and the plan's hash")
	}
	if r.Start != nil && (len(e.Slots) != len(r.Start.Blobs) || e.Hash != r.Hash) {
		return refuse("the snapshot has %d slots of plan %.12s, the placement %d of %.12s", len(r.Start.Blobs), r.Hash, len(e.Slots), e.Hash)
	}
	for _, s := range e.Owner {
		if s < 0 || int(s) >= len(e.Slots) {
			return refuse("slot %d of %d", s, len(e.Slots))
		}
	}
	r.Slots, r.Owner, r.Hash, r.Phase = append([]Slot(nil), e.Slots...), e.Owner, e.Hash, Running
	r.Window, r.End = e.Window, e.End
	for i := range r.Slots {
		r.Slots[i].Inc, r.Slots[i].Done = 1, nil
	}
	return Result{}
}

func (s *State) move(e *Entry) Result {
	r := s.Run
	if e.Slot < 0 || e.Slot >= len(r.Slots) || s.Members[e.To] == nil {
		return refuse("slot %d to %q", e.Slot, e.To)
	}
	x := &r.Slots[e.Slot]
	if x.Inc != e.Inc {
		return refuse("slot %d has incarnation %d, not %d", e.Slot, x.Inc, e.Inc)
	}
	x.Owner, x.Inc, x.Done, x.Next = e.To, x.Inc+1, nil, ""
	r.Moves++
	return Result{}
}

// grant raises the horizon (I7: it never falls). A paused run is granted only
// up to its step.
func (r *Run) grant(e *Entry) Result {
	end := e.At
	if r.Paused {
		end = min(end, r.StepTo)
	}
	r.Grant = max(r.Grant, end)
	return Result{At: r.Grant}
}

// stop ends the run at an instant that nobody has passed; 0 = the first such.
func (r *Run) stop(e *Entry) Result {
	switch at := max(e.At, r.Grant); {
	case e.At > 0 && at != e.At:
		return refuse("%s", r.gone(e.At))
	case at > r.StopAt && e.At > 0:
		return refuse("the run stops at %v already, before %v", r.StopAt, e.At)
	case at > r.ends() && e.At > 0:
		return refuse("the run ends at %v by its run.until or run.limit, before %v", r.End, e.At)
	default:
		r.StopAt = min(r.StopAt, at)
	}
	return Result{At: r.ends()}
}

// ends is the instant that the run does not go beyond, as far as the ledger
// knows: it may be over earlier, for want of work.
func (r *Run) ends() clock.Time {
	if r.End > 0 {
		return min(r.StopAt, r.End)
	}
	return r.StopAt
}

// fault gives the faults of an entry their instant: never in anybody's past, by
// log order alone (whoever runs past Grant has applied a later grant, hence this
// entry). When one is refused, none is taken.
func (r *Run) fault(e *Entry, seq uint64) Result {
	had := r.Faults
	var at clock.Time
	for _, f := range e.faults() {
		f.Seq, f.Base, f.Eff = seq, r.Grant, max(f.Want, r.Grant)
		if bad := r.inject(f); bad != "" {
			r.Faults = had
			return refuse("%s", bad)
		}
		at = f.Eff
	}
	if e.Fault == nil {
		return refuse("a fault needs its text")
	}
	return Result{At: at}
}

// inject takes a fault that has its instant, or says why not.
func (r *Run) inject(f Fault) (bad string) {
	switch {
	case f.Text == "" && !f.Clear:
		return "a fault needs its text"
	case len(r.Faults) >= maxFaults:
		return fmt.Sprintf("%d live faults, at most %d", len(r.Faults), maxFaults)
	case f.Firm && f.Want < r.Grant:
		return r.gone(f.Want)
	case f.Eff >= r.StopAt:
		return fmt.Sprintf("the run stops at %v, before the fault at %v", r.StopAt, f.Eff)
	}
	if f.Name == "" {
		f.Name = fmt.Sprintf("live-%d", len(r.Faults)+1)
	}
	old := r.named(f.Name)
	switch {
	case f.Clear && old == nil:
		return fmt.Sprintf("no live fault %q", f.Name)
	case f.Clear:
		if bad := r.mayEnd(old, f.Eff); bad != "" {
			return bad
		}
		f.Index = old.Index
	case old != nil:
		return fmt.Sprintf("a fault %q is there already", f.Name)
	default:
		for i := range r.Faults {
			if !r.Faults[i].Clear {
				f.Index++
			}
		}
	}
	r.Faults = append(r.Faults, f)
	return ""
}

// mayEnd says why a live fault cannot be ended at an instant: what has not begun
// has nothing to end, and what has an end keeps it.
func (r *Run) mayEnd(f *Fault, at clock.Time) (bad string) {
	if at <= f.Eff {
		return fmt.Sprintf("%q begins at %v and cannot end at %v: give a later time with --at", f.Name, f.Eff, at)
	}
	end := clock.Never
	if f.For > 0 {
		end = f.Eff.Add(f.For)
	}
	for i := range r.Faults {
		if x := &r.Faults[i]; x.Clear && x.Name == f.Name {
			end = clock.Min(end, x.Eff)
		}
	}
	if end <= at {
		return fmt.Sprintf("%q ends at %v, before %v", f.Name, end, at)
	}
	return ""
}

// gone says that an instant may have been run.
func (r *Run) gone(at clock.Time) string {
	return fmt.Sprintf("%v lies before %v, the end of what the cluster may already have run: ask for that or later, or for no time", at, r.Grant)
}

func (r *Run) named(name string) *Fault {
	for i := range r.Faults {
		if r.Faults[i].Name == name && !r.Faults[i].Clear {
			return &r.Faults[i]
		}
	}
	return nil
}

func (s *State) done(e *Entry) Result {
	r := s.Run
	if e.Slot < 0 || e.Slot >= len(r.Slots) || e.Done == nil {
		return refuse("slot %d of %d", e.Slot, len(r.Slots))
	}
	if x := &r.Slots[e.Slot]; x.Inc != e.Inc {
		return refuse("slot %d has incarnation %d, not %d", e.Slot, x.Inc, e.Inc)
	}
	for i := range r.Slots {
		if d := r.Slots[i].Done; d != nil && (d.At != e.Done.At || d.Windows != e.Done.Windows || d.End != e.Done.End) {
			s.over(Failed, fmt.Sprintf("diverged: slot %d ended at %v after %d windows, slot %d at %v after %d", e.Slot, e.Done.At, e.Done.Windows, i, d.At, d.Windows))
			return refuse("%s", r.Why)
		}
	}
	r.Slots[e.Slot].Done = e.Done
	for i := range r.Slots {
		if r.Slots[i].Done == nil {
			return Result{}
		}
	}
	s.over(Ended, "")
	return Result{}
}

// superseded says why the word of a slot does not count (I6): an incarnation
// that has a successor may lack what only that one still gets. Entries that
// speak for no slot have no incarnation.
func (r *Run) superseded(e *Entry) string {
	switch {
	case e.Inc == 0:
		return ""
	case e.Slot < 0 || e.Slot >= len(r.Slots):
		return fmt.Sprintf("slot %d of %d", e.Slot, len(r.Slots))
	case r.Slots[e.Slot].Inc != e.Inc:
		return fmt.Sprintf("slot %d has incarnation %d, not %d", e.Slot, r.Slots[e.Slot].Inc, e.Inc)
	}
	return ""
}

func (s *State) over(p Phase, why string) {
	s.Run.Phase, s.Run.Why, s.Run.Plan = p, why, nil
}

// Digest is the digest of an ended run.
func (r *Run) Digest() string {
	var g actors.Digest
	for i := range r.Slots {
		if d := r.Slots[i].Done; d != nil {
			g = g.Plus(actors.Digest{Hi: d.Digest[0], Lo: d.Digest[1]})
		}
	}
	return g.String()
}
