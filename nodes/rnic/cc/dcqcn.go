package cc

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/rocemu/rocemu/clock"
)

// Params are DCQCN's parameters by their mlx5 meaning (transport §5.1), in the
// plan's names. ReducePeriod above zero selects the mlx5 form: alpha moves once
// a period by whether a CNP came in it, and a flow is cut at most once a
// ReducePeriod. Zero selects the paper's: both happen at each CNP.
type Params struct {
	GNum, GDen               int64          // g; dce_tcp_g
	AlphaPeriod              clock.Duration // dce_tcp_rtt, the paper's K
	InitialAlpha             int64          // × 1/1024; initial_alpha_value
	TimeReset                clock.Duration // rpg_time_reset
	ByteReset                int64          // rpg_byte_reset, bytes; 0 = no byte counter
	Threshold                int64          // rpg_threshold, the paper's F
	AIRate, HAIRate, MinRate clock.Rate     // rpg_ai_rate, rpg_hai_rate, rpg_min_rate
	GD                       int64          // rpg_gd: a cut is alpha / 2^(GD-10); 0 = 11
	MinDecFac                int64          // rpg_min_dec_fac, percent of the rate kept at least
	ReducePeriod             clock.Duration // rate_reduce_monitor_period
	ClampTgt                 bool           // rp_clamp_tgt_rate
	ClampTgtATI              bool           // rp_clamp_tgt_rate_ati
	FirstCNPRate             clock.Rate     // rate_to_set_on_first_cnp, 0 = unused
	SlowRestart              bool           // a loss halves the rate
}

// Paper returns the paper's column with the minimum rate of the model rules.
func Paper() Params {
	return Params{
		GNum: 1, GDen: 256, AlphaPeriod: 55 * clock.Microsecond, InitialAlpha: 1024,
		TimeReset: 55 * clock.Microsecond, ByteReset: 10_000_000, Threshold: 5,
		AIRate: 40 * clock.Mbps, HAIRate: 200 * clock.Mbps, MinRate: 100 * clock.Mbps, GD: 11, ClampTgt: true,
	}
}

// Mlx5 returns the mlx5 column.
func Mlx5() Params {
	return Params{
		GNum: 5, GDen: 1024, AlphaPeriod: clock.Microsecond, InitialAlpha: 1023,
		TimeReset: 300 * clock.Microsecond, ByteReset: 32767, Threshold: 1,
		AIRate: 5 * clock.Mbps, HAIRate: 50 * clock.Mbps, MinRate: clock.Mbps, GD: 11, MinDecFac: 50,
		ReducePeriod: 4 * clock.Microsecond, ClampTgtATI: true,
	}
}

// Validate reports what the arithmetic cannot carry.
func (p *Params) Validate() error {
	var errs []error
	bad := func(cond bool, field string, v any, allowed string) {
		if cond {
			errs = append(errs, fmt.Errorf("dcqcn: %s %v: allowed %s", field, v, allowed))
		}
	}
	bad(p.GDen < 1 || p.GDen > 1<<16, "g denominator", p.GDen, "1..65536")
	bad(p.GNum < 0 || p.GNum > p.GDen, "g numerator", p.GNum, "0..denominator")
	bad(p.AlphaPeriod <= 0, "dce_tcp_rtt", p.AlphaPeriod, "above 0")
	bad(p.TimeReset <= 0, "rpg_time_reset", p.TimeReset, "above 0")
	bad(p.InitialAlpha < 0 || p.InitialAlpha > 1024, "initial_alpha_value", p.InitialAlpha, "0..1024")
	bad(p.ByteReset < 0, "rpg_byte_reset", p.ByteReset, "0 or more")
	bad(p.MinRate <= 0, "rpg_min_rate", p.MinRate, "above 0")
	bad(p.AIRate < 0 || p.HAIRate < 0, "rpg_ai_rate, rpg_hai_rate", p.AIRate, "0 or more")
	bad(p.GD != 0 && (p.GD < 0 || p.GD > 15), "rpg_gd", p.GD, "0..15")
	bad(p.MinDecFac < 0 || p.MinDecFac > 100, "rpg_min_dec_fac", p.MinDecFac, "0..100")
	return errors.Join(errs...)
}

// alphaOne is alpha = 1 in fixed point.
const alphaOne = 1 << 30

// DCQCN is the reaction point of one QP. A QP starts at line rate and keeps
// no timers until its first CNP.
type DCQCN struct {
	// Each packet sent: a cache line.
	pace   Pacer
	p      *Params
	rc     clock.Rate
	bytes  int64
	timer  clock.Time // last expiry of the rate timer
	active bool       // a CNP has come
	marked bool       // mlx5: a CNP came in this alpha period
	full   bool       // rc is the line's rate

	line   clock.Rate
	rt     clock.Rate
	alpha  uint64
	ts, bs int64      // expiries of timer and byte counter since the last cut
	period clock.Time // last boundary of the alpha period
	cut    clock.Time
}

// SetParams replaces the parameters; rates, alpha and stages stay.
func (d *DCQCN) SetParams(p *Params) { d.p = p }

// Init makes d a reaction point at line rate.
func (d *DCQCN) Init(p *Params, line clock.Rate) {
	*d = DCQCN{p: p, line: line, rc: line, rt: line, alpha: uint64(p.InitialAlpha) << 20, full: true}
}

// Rate returns the current rate, Target the target rate, at now.
func (d *DCQCN) Rate(now clock.Time) clock.Rate {
	d.advance(now)
	return d.rc
}

// Target returns the target rate as of the last call.
func (d *DCQCN) Target() clock.Rate { return d.rt }

// Alpha returns alpha at now, in units of 2^-30.
func (d *DCQCN) Alpha(now clock.Time) uint64 {
	d.decay(now)
	return d.alpha
}

// NextSend implements [Controller]; DCQCN has no window.
func (d *DCQCN) NextSend(now clock.Time, inflight int64) clock.Time { return d.pace.Next }

// OnSent implements [Controller].
func (d *DCQCN) OnSent(now clock.Time, l int64) {
	if !d.active {
		return
	}
	d.advance(now)
	if d.p.ByteReset > 0 {
		d.bytes += l
		for d.bytes >= d.p.ByteReset {
			d.bytes -= d.p.ByteReset
			d.bs++
			d.increase()
		}
	}
	if d.full {
		d.pace = Pacer{}
		return
	}
	d.pace.Sent(now, l, d.rc)
}

// OnFeedback implements [Controller]: CNPs cut the rate; a loss does so only
// under slow restart.
func (d *DCQCN) OnFeedback(now clock.Time, fb Feedback) {
	switch {
	case fb.Kind == CNP:
		d.onCNP(now)
	case (fb.Kind == Loss || fb.Kind == Timeout) && d.p.SlowRestart:
		d.begin(now)
		d.advance(now)
		d.setRate(d.rc / 2)
		d.restart(now)
	}
}

func (d *DCQCN) begin(now clock.Time) {
	if !d.active {
		d.active, d.timer, d.period, d.cut = true, now, now, -1
	}
}

func (d *DCQCN) onCNP(now clock.Time) {
	first := !d.active
	d.begin(now)
	d.advance(now)
	d.decay(now)
	if d.p.ReducePeriod > 0 {
		d.marked = true
		if d.cut >= 0 && now.Sub(d.cut) < d.p.ReducePeriod {
			return
		}
	}
	if d.p.ClampTgt || d.bs > 0 || d.p.ClampTgtATI && d.ts > 0 {
		d.rt = d.rc
	}
	if first && d.p.FirstCNPRate > 0 {
		d.setRate(d.p.FirstCNPRate)
	} else {
		d.setRate(d.lowered())
	}
	if d.p.ReducePeriod == 0 {
		d.alpha = d.weigh(d.alpha) + d.gain()
		d.period = now
	}
	d.restart(now)
}

// lowered is the rate after a cut: Rc·(1 − alpha/2^(GD−10)), not below the
// share MinDecFac keeps.
func (d *DCQCN) lowered() clock.Rate {
	gd := uint(11)
	if d.p.GD > 0 {
		gd = uint(d.p.GD)
	}
	hi, lo := bits.Mul64(uint64(d.rc), d.alpha)
	dec := min(clock.Rate(hi<<(44-gd)|lo>>(20+gd)), d.rc)
	r := d.rc - dec
	if f := d.p.MinDecFac; f > 0 {
		r = max(r, d.rc/100*clock.Rate(f))
	}
	return r
}

func (d *DCQCN) setRate(r clock.Rate) {
	d.rc = min(max(r, d.p.MinRate), d.line)
	d.full = d.rc == d.line
}

// restart resets timer, byte counter and stages after a cut.
func (d *DCQCN) restart(now clock.Time) {
	d.timer, d.cut, d.bytes, d.ts, d.bs = now, now, 0, 0, 0
}

// advance runs the rate timer's expiries up to now.
func (d *DCQCN) advance(now clock.Time) {
	if !d.active {
		return
	}
	for now.Sub(d.timer) >= d.p.TimeReset {
		if d.rc == d.line && d.rt == d.line { // nothing can rise any more
			k := int64(now.Sub(d.timer) / d.p.TimeReset)
			d.ts += k
			d.timer = d.timer.Add(d.p.TimeReset * clock.Duration(k))
			return
		}
		d.timer = d.timer.Add(d.p.TimeReset)
		d.ts++
		d.increase()
	}
}

// increase is one event of timer or byte counter: fast recovery, additive or
// hyper increase.
func (d *DCQCN) increase() {
	f := d.p.Threshold
	switch {
	case max(d.ts, d.bs) < f:
	case min(d.ts, d.bs) > f:
		d.rt += d.p.HAIRate * clock.Rate(min(min(d.ts, d.bs)-f, 1<<16))
	default:
		d.rt += d.p.AIRate
	}
	d.rt = min(d.rt, d.line)
	d.rc = min((d.rc+d.rt+1)/2, d.line)
	d.full = d.rc == d.line
}

// decay runs the alpha periods up to now.
func (d *DCQCN) decay(now clock.Time) {
	if !d.active {
		return
	}
	k := int64(now.Sub(d.period) / d.p.AlphaPeriod)
	d.period = d.period.Add(d.p.AlphaPeriod * clock.Duration(k))
	for ; k > 0 && (d.alpha > 0 || d.marked); k-- {
		d.alpha = d.weigh(d.alpha)
		if d.marked {
			d.alpha += d.gain()
			d.marked = false
		}
	}
}

// weigh is (1−g)·a, gain is g.
func (d *DCQCN) weigh(a uint64) uint64 { return a * uint64(d.p.GDen-d.p.GNum) / uint64(d.p.GDen) }
func (d *DCQCN) gain() uint64          { return alphaOne * uint64(d.p.GNum) / uint64(d.p.GDen) }
