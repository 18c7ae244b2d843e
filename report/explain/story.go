package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
)

// Classes of what happened to a flow; look-alikes are kept apart.
const (
	NeverWorked  = "never worked"          // nothing of the pair ever arrived
	StoppedWork  = "stopped working"       // it had worked before
	AcksLost     = "acknowledgements lost" // data arrived, answers did not
	Paused       = "paused"                // frames wait, nothing is lost
	Victim       = "head-of-line victim"   // behind frames of others that wait
	Deadlocked   = "deadlocked"            // and the pauses close a circle
	NotReady     = "receiver not ready"    // RNR
	Refused      = "refused"               // key, length or permission
	Flushed      = "flushed"               // an earlier request of its QP failed
	Livelock     = "livelock"              // busy without progress
	Lossy        = "slowed by loss"
	Congested    = "slowed by congestion"
	TooLong      = "frames too long for a port"
	Loop         = "routing loop"
	BadBucket    = "never worked, unlike its sisters"
	Starved      = "starved"     // no loss, no pause of its own, no progress
	NotDue       = "on schedule" // its next request is not due
	Stalled      = "stands still"
	Straggler    = "one request far slower than the others"
	Unremarkable = "nothing remarkable"
)

// Story is what became of one workload line.
type Story struct {
	Flow   string   `json:"flow"`
	Status string   `json:"status"`
	Class  string   `json:"class"`
	Lines  []string `json:"lines"`
	Advice string   `json:"advice,omitempty"`
}

// slowdownLimit is the p99 slowdown above which a flow is told of although it
// succeeded.
const slowdownLimit = 5

// pairLimit is how many pairs of RNICs of one line are looked at in detail.
const pairLimit = 4

// Stories explains the named line, or every line that failed, did not finish
// or was slow.
func (r *Run) Stories(flow string) ([]Story, error) {
	var out []Story
	for _, name := range slices.Sorted(maps.Keys(r.Result.Flows)) {
		f := r.Result.Flows[name]
		if flow != "" && name != lineOf(flow) {
			continue
		}
		if flow == "" && !remarkable(f) && r.victim(name) == "" {
			continue
		}
		out = append(out, r.story(name, flow, f))
	}
	if flow != "" && len(out) == 0 {
		return nil, fmt.Errorf("no workload line is named %q; there are: %s", flow,
			strings.Join(slices.Sorted(maps.Keys(r.Result.Flows)), ", "))
	}
	return out, nil
}

func remarkable(f *report.FlowLine) bool {
	return f.Status != "success" || f.Retransmitted > 0 || f.Slowdown != nil && f.Slowdown.P99 > slowdownLimit || f.Stalled() || f.Straggled()
}

// story looks at the worst pairs of one line.
func (r *Run) story(name, single string, f *report.FlowLine) Story {
	s := Story{Flow: name, Status: f.Status}
	rows := r.worst(name, single)
	if len(rows) == 0 {
		rows = []row{{Name: name, From: f.From, To: f.To, Status: f.Status, Why: f.Why, Completed: f.Completed, Failed: f.Failed}}
	}
	blocked := r.victim(name)
	for i, x := range rows[:min(len(rows), pairLimit)] {
		c := r.collect(x.From, x.To)
		class, advice := r.classify(f, &x, c)
		if blocked != "" && (class == Paused || class == Unremarkable) {
			class, advice = Victim, "its own way is free: "+c.pauser()
		}
		if i == 0 {
			s.Class, s.Advice = class, advice
		}
		if len(rows) > 1 {
			s.Lines = append(s.Lines, fmt.Sprintf("%s: %s, %s", x.Name, x.Status, class))
		}
		s.Lines = append(s.Lines, c.lines()...)
	}
	if n := len(rows) - pairLimit; n > 0 {
		s.Lines = append(s.Lines, fmt.Sprintf("and %d more single flows like these", n))
	}
	if blocked != "" {
		s.Lines = append(s.Lines, "blocked: "+blocked)
	}
	if f.Stalled() && f.Status != "success" { // else its why says so
		s.Lines = append(s.Lines, "stands still: "+f.StallText())
	}
	if f.Straggled() {
		s.Lines = append(s.Lines, "slow: "+f.TailText())
	}
	if f.Why != "" {
		s.Lines = append(s.Lines, "waits: "+f.Why)
	}
	if !r.Records {
		s.Lines = append(s.Lines, "no records: run with --out DIR and explain DIR")
	}
	return s
}

// worst lists the single flows of a line that failed or did not finish, one a
// pair of RNICs; all of them when none did.
func (r *Run) worst(name, single string) []row {
	var bad, all []row
	seen := map[[2]string]bool{}
	for _, x := range r.Rows {
		if x.Line != name || strings.Contains(single, "[") && x.Name != single {
			continue
		}
		k := [2]string{x.From, x.To}
		if x.Status != "success" && !seen[k] {
			seen[k] = true
			bad = append(bad, x)
		}
		if len(all) < pairLimit {
			all = append(all, x)
		}
	}
	if len(bad) == 0 {
		bad = all
	}
	slices.SortStableFunc(bad, func(a, b row) int { return cmp.Compare(a.calm(), b.calm()) })
	return bad
}

// calm sorts flows: those that wait for something, those without a word, those
// that only wait for their next request's time.
func (x *row) calm() int {
	switch x.Why {
	case "":
		return 1
	case report.NotDue:
		return 2
	}
	return 0
}

// loss is a group of drops that share place and reason.
type loss struct {
	where, reason, fault string
	back                 bool // acknowledgements and responses
	n                    int
	first, last          int64
	psn                  int64
}

// chain is what the records say of a pair of RNICs.
type chain struct {
	from, to    string
	losses      []loss
	timeouts    []int64
	naks, rnrs  int
	rnrLost     int64 // ps
	implied     int
	duplicates  int
	outOfSeq    int
	resent      int
	qpError     int64 // at, -1 = none
	cuts        int
	firstAct    int64
	tail        int64 // last timeout's length
	silence     int64 // when the wait of the first timeout began
	pausedShare float64
	pausedAt    string
	root        *root // of the pause at pausedAt; nil when not known
	deadlock    string
}

// collect gathers the records of both directions of a pair.
func (r *Run) collect(from, to string) *chain {
	c := &chain{from: from, to: to, qpError: -1, firstAct: -1}
	for i := range r.Events {
		e := &r.Events[i]
		if fwd := e.Src == from && e.Dst == to; fwd || e.Src == to && e.Dst == from {
			c.take(e, fwd)
		}
	}
	r.pauses(c)
	c.root = r.rootOf(c.pausedAt)
	return c
}

func (c *chain) take(e *event, fwd bool) {
	if c.firstAct < 0 {
		c.firstAct = e.At
	}
	switch e.Kind {
	case "drop":
		c.lost(e, !fwd)
	case "timeout":
		if len(c.timeouts) == 0 {
			c.silence = e.At - e.Y
		}
		c.timeouts = append(c.timeouts, e.At)
		c.tail = e.Y
	case "nak_received":
		c.naks++
	case "rnr_received":
		c.rnrs++
		c.rnrLost += e.X
	case "implied_nak":
		c.implied++
	case "duplicate":
		c.duplicates++
	case "out_of_sequence":
		c.outOfSeq++
	case "retransmit":
		c.resent++
	case "cnp_received":
		c.cuts++
	case "qp_error":
		if c.qpError < 0 {
			c.qpError = e.At
		}
	}
}

func (c *chain) lost(e *event, back bool) {
	where := fmt.Sprintf("%s:%d", e.Device, e.Port)
	for i := range c.losses {
		if l := &c.losses[i]; l.where == where && l.reason == e.Reason && l.fault == e.Fault && l.back == back {
			l.n++
			l.last = e.At
			return
		}
	}
	c.losses = append(c.losses, loss{where, e.Reason, e.Fault, back, 1, e.At, e.At, e.PSN})
}

// pauses finds how long the sender, or the port before the receiver, was
// paused, as a share of the run.
func (r *Run) pauses(c *chain) {
	total := float64(r.Result.VirtualNS)
	if total <= 0 {
		return
	}
	consider := func(where string, span report.NS) {
		if share := float64(span) / total; share > c.pausedShare {
			c.pausedShare, c.pausedAt = share, where
		}
	}
	if n := r.Result.RNICs[c.from]; n != nil {
		for _, span := range n.RxPauseNS {
			consider(c.from, span)
		}
	}
	for _, sw := range slices.Sorted(maps.Keys(r.Result.Switches)) {
		ports := r.Result.Switches[sw].Ports
		for _, num := range slices.Sorted(maps.Keys(ports)) {
			if p := ports[num]; strings.HasPrefix(p.Peer, c.to+":") {
				for _, x := range p.PFC {
					consider(sw+":"+num, x.RxPauseNS)
				}
			}
		}
	}
	if len(r.Result.Deadlocks) > 0 {
		c.deadlock = strings.Join(r.Result.Deadlocks[0].Cycle, " > ")
	}
}

// lines prints the chain in order of time.
func (c *chain) lines() []string {
	type item struct {
		at   int64
		text string
	}
	var items []item
	for _, l := range c.losses {
		items = append(items, item{l.first, l.text(c)})
	}
	if n := len(c.timeouts); n > 0 {
		items = append(items, item{c.timeouts[0], fmt.Sprintf("%s: %s, the last at %s", c.from, count(n, "ACK timeout"), at(c.timeouts[n-1]))})
	}
	if c.qpError >= 0 {
		items = append(items, item{c.qpError, c.from + ": retries used up or request refused, QP in error"})
	}
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(a.at, b.at) })
	var out []string
	for _, i := range items {
		out = append(out, fmt.Sprintf("%-14s %s", at(i.at), i.text))
	}
	return append(out, c.sums()...)
}

// sums are the facts without a single instant.
func (c *chain) sums() []string {
	var out []string
	add := func(format string, a ...any) { out = append(out, fmt.Sprintf("%-14s ", "")+fmt.Sprintf(format, a...)) }
	if c.naks+c.implied > 0 {
		add("%s and %s brought %s", count(c.naks, "sequence NAK"), count(c.implied, "implied NAK"), count(c.resent, "retransmission"))
	}
	if c.rnrs > 0 {
		add("%s: %s spent in waits that %s asked for", count(c.rnrs, "RNR NAK"), clock.Duration(c.rnrLost), c.to)
	}
	if c.duplicates > 0 {
		add("%s saw %s: the data had arrived", c.to, count(c.duplicates, "duplicate"))
	}
	if c.pausedShare > 0.01 {
		add("%s was paused %.1f %% of the run", c.pausedAt, 100*c.pausedShare)
	}
	if c.pausedShare > 0.2 && c.root != nil {
		add("%s", c.root.fact())
	}
	if c.cuts > 0 {
		add("%s cut the rate", count(c.cuts, "CNP"))
	}
	if c.deadlock != "" {
		add("deadlock: %s", c.deadlock)
	}
	return out
}

func (l *loss) text(c *chain) string {
	what, by := "data of "+c.from, ""
	if l.back {
		what = "answers of " + c.to
	}
	if l.fault != "" {
		by = ", fault " + l.fault
	}
	more := ""
	if l.n > 1 {
		more = fmt.Sprintf(" and %d more until %s", l.n-1, at(l.last))
	}
	return fmt.Sprintf("%s: %s lost (%s%s): PSN %d%s", l.where, what, l.reason, by, l.psn, more)
}

func at(ps int64) string { return clock.Time(ps).String() }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
