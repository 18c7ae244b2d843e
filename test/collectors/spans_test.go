package collectors

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/telemetry/chain"
)

// span is what any backend knows of a span, attributes as text.
type span struct {
	trace, id, parent string
	name, service     string
	start, length     int64             // exported, in the backend's unit
	links             map[string]string // span id → emu.link
	failed            bool              // status is error
	attr              map[string]string
}

// scale is telemetry.scale's default: a virtual picosecond is an exported
// nanosecond.
const scale = 1000

// checker compares spans with the chains that a run lists. unit is the
// backend's: 1 = nanoseconds, 1000 = microseconds.
type checker struct {
	t     testing.TB
	unit  int64
	spans map[string]*span // by trace and span id
	used  int
	epoch int64 // exported time of virtual 0
}

func newChecker(t testing.TB, unit int64, list []*span) *checker {
	c := &checker{t: t, unit: unit, spans: map[string]*span{}}
	for _, s := range list {
		key := s.trace + s.id
		if c.spans[key] != nil {
			t.Errorf("span %s of trace %s twice", s.id, s.trace)
		}
		c.spans[key] = s
	}
	return c
}

// all checks every chain and that there is no span beside theirs. The account
// in the result must say the same.
func (c *checker) all(out output) {
	c.t.Helper()
	for i := range out.chains {
		c.chain(&out.chains[i])
	}
	if c.used != len(c.spans) {
		c.t.Errorf("%d spans belong to listed chains, of %d", c.used, len(c.spans))
	}
	n := out.res.Telemetry
	if len(n.Exports) != 1 || n.ChainsListed != n.ChainsMade || int(n.ChainsMade) != len(out.chains) {
		c.t.Fatalf("account %+v, %d chains listed", n, len(out.chains))
	}
	e := n.Exports[0]
	if e.ChainsExported+e.ChainsDropped != n.ChainsMade || e.ChainsDropped != 0 || int(e.SpansExported) != len(c.spans) {
		c.t.Errorf("account %+v of %d chains; %d spans found", e, n.ChainsMade, len(c.spans))
	}
}

// chain checks the root and the steps of one chain.
func (c *checker) chain(l *chain.Line) {
	c.t.Helper()
	root := c.root(l)
	if root == nil {
		return
	}
	for i := range l.Steps {
		c.step(l, i, root)
	}
}

// root finds the chain's request: the only span of its trace without a parent.
func (c *checker) root(l *chain.Line) *span {
	c.t.Helper()
	var root *span
	for _, s := range c.spans {
		if s.trace == l.Trace && s.parent == "" {
			if root != nil {
				c.t.Errorf("trace %s has two roots", l.Trace)
			}
			root = s
		}
	}
	if root == nil {
		c.t.Errorf("no trace %s (%s)", l.Trace, l.Flow)
		return nil
	}
	c.used++
	if c.epoch == 0 {
		c.epoch = root.start - int64(l.PostedNS)/c.unit
	}
	c.same(root, "name", root.name, "request")
	c.same(root, "service", root.service, l.From)
	c.same(root, "status", root.failed, l.Outcome != "recovered")
	c.times(root, l.PostedNS, l.EndNS)
	c.attributes(root, map[string]string{
		"rdma.src": l.From, "rdma.dst": l.To, "rdma.qpn": text(l.QP), "rdma.src_qpn": text(l.SrcQP), "rdma.psn": text(l.PSN),
		"rdma.request": text(l.Request), "rdma.cause": l.Cause, "rdma.status": l.Outcome, "rdma.retry": text(l.Retries),
		"rdma.retransmitted_packets": text(l.Resends), "emu.folded_steps": text(l.Folded),
	})
	if root.attr["rdma.flow"] == "" || len(root.links) != 0 {
		c.t.Errorf("%s: flow %q, links %v", root.id, root.attr["rdma.flow"], root.links)
	}
	return root
}

// step checks one step: below the request, at its device, linked to its cause.
func (c *checker) step(l *chain.Line, i int, root *span) {
	c.t.Helper()
	st := &l.Steps[i]
	s := c.spans[l.Trace+st.Span]
	if s == nil {
		c.t.Errorf("trace %s has no span %s (%s)", l.Trace, st.Span, st.Name)
		return
	}
	c.used++
	c.same(s, "name", s.name, st.Name)
	c.same(s, "parent", s.parent, root.id)
	c.same(s, "service", s.service, st.Device)
	c.same(s, "status", s.failed, st.Name == "loss" || st.Name == "error")
	want := map[string]string{}
	if st.Cause >= 0 {
		want[l.Steps[st.Cause].Span] = "cause"
	}
	if !maps.Equal(s.links, want) {
		c.t.Errorf("%s %s: links %v, want %v", s.name, s.id, s.links, want)
	}
	c.times(s, st.SinceNS, st.UntilNS)
	attr := map[string]string{"net.device": st.Device, "rdma.psn": text(st.PSN)}
	if st.Port != 0 {
		attr["net.port"] = text(st.Port)
	}
	for key, v := range map[string]string{"rdma.opcode": st.Op, "drop.reason": st.Reason, "fault.name": st.Fault} {
		if v != "" {
			attr[key] = v
		}
	}
	c.attributes(s, attr)
	for _, key := range needs[st.Name] {
		if s.attr[key] == "" {
			c.t.Errorf("%s %s has no %s: %v", s.name, s.id, key, s.attr)
		}
	}
}

// needs are the further attributes that docs/telemetry.md gives a step.
var needs = map[string][]string{
	"loss":       {"rdma.qpn", "rdma.transmission", "rdma.opcode", "drop.reason", "queue.bytes", "net.priority"},
	"gap":        {"rdma.qpn", "rdma.psn_received"},
	"nak sent":   {"rdma.qpn", "rdma.syndrome"},
	"nak":        {"rdma.qpn", "rdma.syndrome"},
	"rnr sent":   {"rdma.qpn", "rdma.rnr_timer"},
	"timeout":    {"rdma.qpn", "rdma.retries_left"},
	"go back":    {"rdma.qpn", "rdma.psn_from"},
	"retransmit": {"rdma.qpn", "rdma.opcode", "rdma.transmission"},
	"recovery":   {"rdma.qpn", "rdma.status"},
	"error":      {"rdma.qpn", "rdma.status"},
}

// times checks epoch + scale × virtual, and the exact values in attributes. A
// backend that ends at microseconds rounds.
func (c *checker) times(s *span, from, to report.NS) {
	c.t.Helper()
	if d := s.start - c.epoch - int64(from)*scale/1000/c.unit; d < -1 || d > 1 || c.unit == 1 && d != 0 {
		c.t.Errorf("%s %s starts %d beside epoch + %d × %d ps", s.name, s.id, d, scale, from)
	}
	if d := s.length - int64(to-from)*scale/1000/c.unit; d < -1 || d > 1 || c.unit == 1 && d != 0 {
		c.t.Errorf("%s %s lasts %d, virtual %d ps", s.name, s.id, s.length, to-from)
	}
	c.attributes(s, map[string]string{"emu.vt_ps": text(int64(from)), "emu.dur_ps": text(int64(to - from))})
}

func (c *checker) attributes(s *span, want map[string]string) {
	c.t.Helper()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		c.same(s, key, s.attr[key], want[key])
	}
}

func (c *checker) same(s *span, what string, got, want any) {
	c.t.Helper()
	if got != want {
		c.t.Errorf("%s %s of trace %s: %s = %v, want %v", s.name, s.id, s.trace, what, got, want)
	}
}

// text writes a value as attributes are compared.
func text(v any) string {
	if n, ok := v.(int64); ok {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprint(v)
}
