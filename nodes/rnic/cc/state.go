package cc

import (
	"encoding/binary"
	"errors"

	"github.com/rocemu/rocemu/clock"
)

// errState is a snapshot that is short or holds what no machine can be in.
var errState = errors.New("cc: snapshot: truncated or impossible state")

func appendWords(b []byte, ws ...int64) []byte {
	for _, w := range ws {
		b = binary.LittleEndian.AppendUint64(b, uint64(w))
	}
	return b
}

func readWords(b []byte, ws ...*int64) ([]byte, error) {
	if len(b) < 8*len(ws) {
		return b, errState
	}
	for i, w := range ws {
		*w = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return b[8*len(ws):], nil
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// AppendState appends d's canonical state; parameters are not part of it.
func (d *DCQCN) AppendState(b []byte) []byte {
	return appendWords(b, int64(d.rc), int64(d.rt), int64(d.alpha), d.ts, d.bs, d.bytes, int64(d.timer), int64(d.period),
		int64(d.cut), int64(d.pace.Next), d.pace.carry, int64(d.pace.rate), flag(d.active)|flag(d.marked)<<1)
}

// ReadState restores a d that Init made, and returns the rest of b.
func (d *DCQCN) ReadState(b []byte) ([]byte, error) {
	var rc, rt, alpha, timer, period, cut, next, carry, rate, fl int64
	b, err := readWords(b, &rc, &rt, &alpha, &d.ts, &d.bs, &d.bytes, &timer, &period, &cut, &next, &carry, &rate, &fl)
	if err != nil {
		return b, err
	}
	if rc <= 0 || clock.Rate(rc) > d.line || rt < 0 || clock.Rate(rt) > d.line || alpha < 0 || alpha > 2*alphaOne ||
		d.ts < 0 || d.bs < 0 || d.bytes < 0 || timer < 0 || period < 0 || next < 0 || carry < 0 || rate < 0 || fl&^3 != 0 {
		return b, errState
	}
	d.rc, d.rt, d.alpha = clock.Rate(rc), clock.Rate(rt), uint64(alpha)
	d.timer, d.period, d.cut = clock.Time(timer), clock.Time(period), clock.Time(cut)
	d.pace = Pacer{Next: clock.Time(next), carry: carry, rate: clock.Rate(rate)}
	d.active, d.marked, d.full = fl&1 != 0, fl&2 != 0, d.rc == d.line
	return b, nil
}

// AppendState appends s's canonical state.
func (s *Swift) AppendState(b []byte) []byte {
	return appendWords(b, s.cwnd, int64(s.rtt), int64(s.delay), int64(s.lastCut), int64(s.lastSent), int64(s.timeouts))
}

// ReadState restores an s that Init made, and returns the rest of b.
func (s *Swift) ReadState(b []byte) ([]byte, error) {
	var cwnd, rtt, delay, cut, sent, to int64
	b, err := readWords(b, &cwnd, &rtt, &delay, &cut, &sent, &to)
	if err != nil {
		return b, err
	}
	if cwnd < cwndMin || cwnd > s.p.MaxCwnd*cwndOne || rtt < 0 || delay < 0 || to < 0 {
		return b, errState
	}
	s.cwnd, s.rtt, s.delay = cwnd, clock.Duration(rtt), clock.Duration(delay)
	s.lastCut, s.lastSent, s.timeouts = clock.Time(cut), clock.Time(sent), int(to)
	return b, nil
}

// AppendState appends n's canonical state: its keys in order.
func (n *NP) AppendState(b []byte) []byte {
	b = appendWords(b, int64(len(n.last)))
	for _, l := range n.last {
		b = appendWords(b, int64(l.key), int64(l.at))
	}
	return b
}

// ReadState restores n, and returns the rest of b.
func (n *NP) ReadState(b []byte) ([]byte, error) {
	var count int64
	b, err := readWords(b, &count)
	if err != nil {
		return b, err
	}
	if count < 0 || count > int64(len(b)/16) {
		return b, errState
	}
	n.last = make([]lastCNP, 0, count)
	prev := uint64(0)
	for i := int64(0); i < count; i++ {
		var k, t int64
		if b, err = readWords(b, &k, &t); err != nil {
			return b, err
		}
		if i > 0 && uint64(k) <= prev || t < 0 {
			return b, errState
		}
		prev = uint64(k)
		n.last = append(n.last, lastCNP{prev, clock.Time(t)})
	}
	return b, nil
}

// AppendState appends p's state.
func (p *Pacer) AppendState(b []byte) []byte {
	return appendWords(b, int64(p.Next), p.carry, int64(p.rate))
}

// ReadState restores p, and returns the rest of b.
func (p *Pacer) ReadState(b []byte) ([]byte, error) {
	var next, carry, rate int64
	b, err := readWords(b, &next, &carry, &rate)
	if err != nil {
		return b, err
	}
	if next < 0 || carry < 0 || rate < 0 {
		return b, errState
	}
	*p = Pacer{Next: clock.Time(next), carry: carry, rate: clock.Rate(rate)}
	return b, nil
}
