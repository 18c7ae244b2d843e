package rnic

import (
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/cc"
	"github.com/rocemu/rocemu/topology"
)

// control is the sending rate of one end of a QP: the pace its flows ask for
// and what congestion control allows. DCQCN keeps a QP at line rate until its
// first CNP, or its first loss where that lowers the rate, so its state exists only from then on.
type control struct {
	pace  *pace // nil = at any rate
	dcqcn *cc.DCQCN
	swift *cc.Swift
}

// pace is a rate that the workload asks for.
type pace struct {
	cc.Pacer
	rate clock.Rate
}

func (r *RNIC) newControl(p *pair) {
	c := &p.ctl
	for _, i := range p.flows {
		f := r.flows[i].f
		if f.Rate > 0 && c.pace == nil {
			c.pace = &pace{rate: f.Rate}
		}
		if f.Rate > 0 {
			c.pace.rate = min(c.pace.rate, f.Rate)
		}
	}
	if r.nic.Congestion == "swift" {
		c.swift = new(cc.Swift)
		c.swift.Init(r.swift)
	}
	p.paced = *c != control{}
}

// nextSend is the earliest instant of the pair's next data packet, Never when
// an acknowledgement must come first.
func (p *pair) nextSend(now clock.Time) clock.Time {
	if !p.paced {
		return 0
	}
	return p.allowed(now)
}

func (p *pair) allowed(now clock.Time) clock.Time {
	c := &p.ctl
	t := clock.Time(0)
	if c.pace != nil {
		t = c.pace.Next
	}
	if c.dcqcn != nil {
		t = max(t, c.dcqcn.NextSend(now, 0))
	}
	if c.swift != nil {
		t = max(t, c.swift.NextSend(now, p.q.Req.InFlight()))
	}
	return t
}

// onSend books a data frame of l bytes sent at now.
func (p *pair) onSend(now clock.Time, l int64) {
	if p.paced {
		p.ctl.onSend(now, l)
	}
}

func (c *control) onSend(now clock.Time, l int64) {
	if c.pace != nil {
		c.pace.Sent(now, l, c.pace.rate)
	}
	if c.dcqcn != nil {
		c.dcqcn.OnSent(now, l)
	}
	if c.swift != nil {
		c.swift.OnSent(now, l)
	}
}

// onCNP is the reaction point; it reports whether congestion control took the
// CNP.
func (r *RNIC) onCNP(now clock.Time, p *pair) bool {
	c := &p.ctl
	if r.nic.Congestion != "dcqcn" {
		return false
	}
	if c.dcqcn == nil {
		r.reactionPoint(p)
	}
	c.dcqcn.OnFeedback(now, cc.Feedback{Kind: cc.CNP})
	return true
}

// reactionPoint gives a QP the state of DCQCN, at line rate.
func (r *RNIC) reactionPoint(p *pair) {
	p.paced, p.ctl.dcqcn = true, new(cc.DCQCN)
	p.ctl.dcqcn.Init(r.dcqcn, r.dev.Ports[0].Rate)
}

// feedback gives congestion control what a response or a loss told.
func (r *RNIC) feedback(now clock.Time, p *pair) {
	c, fx := &p.ctl, &r.fx
	if fx.Loss && c.dcqcn == nil && r.nic.Congestion == "dcqcn" && r.dcqcn.SlowRestart {
		r.reactionPoint(p)
	}
	if c.dcqcn != nil && fx.Loss {
		c.dcqcn.OnFeedback(now, cc.Feedback{Kind: cc.Loss})
	}
	if c.swift == nil {
		return
	}
	if fx.Loss {
		c.swift.OnFeedback(now, cc.Feedback{Kind: cc.Loss})
	}
	if fx.Acked > 0 || fx.HasRTT {
		c.swift.OnFeedback(now, cc.Feedback{Kind: cc.Ack, Acked: fx.Acked, RTT: fx.RTT, Delay: fx.OneWay})
	}
}

// dcqcnParams turns the plan's parameters into those of package cc.
func dcqcnParams(n *topology.NIC) *cc.Params {
	d := &n.DCQCN
	return &cc.Params{
		GNum: d.GNum, GDen: d.GDen, AlphaPeriod: d.AlphaPeriod, InitialAlpha: d.InitialAlpha, TimeReset: d.TimeReset,
		ByteReset: d.ByteReset, Threshold: d.Threshold, AIRate: d.AIRate, HAIRate: d.HAIRate, MinRate: d.MinRate, GD: d.GD,
		MinDecFac: d.MinDecFac, ReducePeriod: d.ReducePeriod, ClampTgt: d.ClampTgt, ClampTgtATI: d.ClampTgtATI,
		FirstCNPRate: d.FirstCNPRate, SlowRestart: n.Pers.SlowRestart,
	}
}

func swiftParams(n *topology.NIC) *cc.SwiftParams {
	p := cc.DefaultSwift()
	s := &n.Swift
	if s.BaseTarget > 0 {
		p.BaseTarget = s.BaseTarget
	}
	if s.HopScale > 0 {
		p.HopScale = s.HopScale
	}
	if s.AI > 0 {
		p.AI = s.AI
	}
	if s.Beta > 0 {
		p.Beta = s.Beta
	}
	if s.MaxMDF > 0 {
		p.MaxMDF = s.MaxMDF
	}
	return &p
}

// newNP builds the notification point of a NIC model; the plan has checked the
// scope.
func newNP(n *topology.NIC) cc.NP {
	scope, err := cc.ParseScope(n.Pers.CNPScope)
	if err != nil {
		scope = cc.PerQP
	}
	return cc.NP{Scope: scope, Interval: max(n.DCQCN.CNPInterval, n.Pers.CNPFloor)}
}

// marked is the notification point: data came with CE.
func (r *RNIC) marked(now clock.Time, p *pair) {
	r.moved.ecnMarked++
	if r.nic.Congestion == "dcqcn" && r.np.Mark(now, p.q.QPN(), r.k, p.peer) {
		r.sendCNP(now, p)
	}
}

func (c *control) snapshot(w *snap.Writer) {
	p := c.pace
	if p == nil {
		p = &pace{}
	}
	w.I64(int64(p.rate))
	w.B = p.AppendState(w.B)
	w.Bool(c.dcqcn != nil)
	if c.dcqcn != nil {
		w.B = c.dcqcn.AppendState(w.B)
	}
	if c.swift != nil {
		w.B = c.swift.AppendState(w.B)
	}
}

func (r *RNIC) restoreControl(s *snap.Reader, p *pair) {
	c := &p.ctl
	w := &pace{rate: clock.Rate(s.I64())}
	if s.Err == nil {
		s.B, s.Err = w.ReadState(s.B)
	}
	if c.pace = nil; w.rate != 0 {
		c.pace, p.paced = w, true
	}
	if s.Bool() && s.Err == nil {
		r.reactionPoint(p)
		s.B, s.Err = c.dcqcn.ReadState(s.B)
	}
	if c.swift != nil && s.Err == nil {
		s.B, s.Err = c.swift.ReadState(s.B)
	}
}
