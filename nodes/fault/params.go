package fault

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

// params reads a fault's remaining parameters and collects every complaint.
type params struct {
	f    *topology.Fault
	plan *topology.Plan
	used map[string]bool
	errs []error
}

func (p *params) fail(name, allowed string) {
	value := p.f.Params[name]
	if name == "count" { // no kind's own
		value = strconv.FormatInt(p.f.Count, 10)
	}
	p.errs = append(p.errs, fmt.Errorf("%s: fault %s: %s=%q: %s", p.f.Pos, p.f.Name, name, value, allowed))
}

func (p *params) get(name string) (string, bool) {
	v, ok := p.f.Params[name]
	p.used[name] = true
	return v, ok && v != ""
}

func (p *params) need(name string) (string, bool) {
	v, ok := p.get(name)
	if !ok {
		p.errs = append(p.errs, fmt.Errorf("%s: fault %s: %s needs %s=…", p.f.Pos, p.f.Name, p.f.Kind, name))
	}
	return v, ok
}

func (p *params) dur(name string, def clock.Duration) clock.Duration {
	v, ok := p.get(name)
	if !ok {
		return def
	}
	d, err := topology.ParseDuration(v)
	if err != nil {
		p.fail(name, err.Error())
	} else if d > clock.Duration(maxTime) {
		p.fail(name, fmt.Sprintf("must be at most %v", maxTime))
		return def
	}
	return d
}

func (p *params) num(name string, lo, hi, def int64) int64 {
	v, ok := p.get(name)
	if !ok {
		return def
	}
	n, err := strconv.ParseInt(v, 0, 64)
	if err != nil || n < lo || n > hi {
		p.fail(name, fmt.Sprintf("must be a whole number from %d to %d", lo, hi))
		return def
	}
	return n
}

func (p *params) rate(name string) clock.Rate {
	v, ok := p.need(name)
	if !ok {
		return 1
	}
	r, err := topology.ParseRate(v)
	if err != nil {
		p.fail(name, err.Error())
		return 1
	}
	return r
}

func (p *params) size(name string) int64 {
	v, ok := p.need(name)
	if !ok {
		return 0
	}
	n, err := topology.ParseSize(v)
	if err != nil {
		p.fail(name, err.Error())
	}
	return n
}

func (p *params) prob(name string, def prob) prob {
	v, ok := p.get(name)
	if !ok {
		return def
	}
	x, err := parseProb(v)
	if err != nil {
		p.fail(name, err.Error())
	}
	return x
}

// rnic reads the name of an RNIC.
func (p *params) rnic(name string) uint32 {
	v, ok := p.get(name)
	if !ok {
		return 0
	}
	for i := range p.plan.Devices {
		if d := &p.plan.Devices[i]; d.Name == v && d.Kind == topology.RNIC {
			return uint32(d.Num)
		}
	}
	p.fail(name, "must name an RNIC such as rnic1")
	return 0
}

func (p *params) dir() Dir {
	v, ok := p.get("dir")
	if !ok {
		v = p.f.Match.Dir
	}
	switch v {
	case "", "both":
		return Both
	case "out":
		return Out
	case "in":
		return In
	}
	p.fail("dir", "must be out or in")
	return Both
}

// list reads numbers separated by commas or spaces, with or without brackets.
func (p *params) list(name string, hi int64) []uint32 {
	v, ok := p.get(name)
	if !ok || v == "all" {
		return nil
	}
	var out []uint32
	for _, w := range strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune(",[] ", r) }) {
		n, err := strconv.ParseUint(w, 0, 32)
		if err != nil || int64(n) > hi {
			p.fail(name, fmt.Sprintf("must be a list of numbers from 0 to %d such as 3,4", hi))
			return nil
		}
		out = append(out, uint32(n))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (p *params) finish() error {
	for _, k := range slices.Sorted(maps.Keys(p.f.Params)) {
		if !p.used[k] {
			p.fail(k, p.f.Kind+" has no such parameter")
		}
	}
	return errors.Join(p.errs...)
}

// read takes the parameters of the fault's kind.
func (p *params) read(s *Spec) {
	s.Every = uint64(p.num("every", 1, 1<<40, 0))
	s.Prob = p.prob("probability", prob{sure: true})
	switch s.Kind {
	case LinkDown, LinkFlap, OneWay, DeviceDown:
		p.link(s)
	case Rate:
		s.Rate = p.rate("to")
	case Set:
		p.get("to")
	case SlowReceiver:
		s.Rate = p.rate("drain")
	case BER:
		if v, ok := p.need("to"); ok {
			x, err := parseProb(v)
			if err != nil {
				p.fail("to", err.Error())
			}
			s.Prob = x
		}
	case MTU, Buffer:
		s.Size = p.size("size")
	case Hash, Route, Blackhole, DSCP:
		p.path(s)
	case Corrupt:
		p.field(s)
	case Delay:
		p.need("by")
		s.By = p.dur("by", 0)
	case Inject:
		s.Forge = p.forge(s)
	case PauseStorm, PFCOff, ECNOff:
		for _, n := range p.list("priorities", 7) {
			s.Prios |= 1 << n
		}
		if s.Prios == 0 {
			s.Prios = p.defaultPrios(s)
		}
	case RQEmpty, RQPause, MRNotReady, NoResource, EarlyRNR, QPError, PCIeStall, RxOverflow:
		s.QPs = p.list("qps", 1<<24-1)
		s.Wait = p.dur("wait", 0)
	}
}

// defaultPrios are the lossless priorities of the target; all for ecn-off.
func (p *params) defaultPrios(s *Spec) uint8 {
	if s.Kind == ECNOff || p.f.Dev < 0 {
		return 0xff
	}
	var m uint8
	add := func(l *[8]bool) {
		for i, on := range l {
			if on {
				m |= 1 << i
			}
		}
	}
	d := &p.plan.Devices[p.f.Dev]
	if d.NIC != nil {
		add(&d.NIC.Lossless)
	}
	for i := range d.Ports {
		if q := &d.Ports[i]; q.PFC != nil && (s.Port == 0 || s.Port == q.Num) {
			add(&q.PFC.Lossless)
		}
	}
	return m
}

// minPeriod is the shortest period of a flapping link.
const minPeriod = 10 * clock.Nanosecond

func (p *params) link(s *Spec) {
	s.Hold = p.dur("hold", 0)
	s.Detect = p.dur("detect", 0)
	s.Withdraw = p.dur("withdraw", DefaultWithdraw)
	if s.Kind == DeviceDown && p.f.Dev >= 0 {
		if sw := p.plan.Devices[p.f.Dev].Switch; sw != nil {
			s.Boot = sw.Boot
		}
		s.Boot = p.dur("boot", s.Boot)
	}
	if s.Kind != LinkFlap {
		return
	}
	p.need("period")
	s.Period = p.dur("period", clock.Millisecond)
	duty := p.prob("duty", prob{hi: 1 << 63})
	if s.Period < minPeriod || duty.zero() || duty.sure {
		p.fail("period", "period must be at least 10ns and duty, the share of it that the link is down, between 0 and 1")
		return
	}
	s.DownFor = duty.of(s.Period)
}

func (p *params) field(s *Spec) {
	v, ok := p.get("field")
	if !ok {
		v = "icrc"
	}
	i := slices.Index(fieldNames[:], v)
	if i < 0 {
		p.fail("field", "allowed: "+strings.Join(fieldNames[:], " "))
		return
	}
	s.Field = Field(i)
}

func (p *params) path(s *Spec) {
	switch s.Kind {
	case Hash:
		v, _ := p.need("to")
		if n, err := strconv.ParseUint(v, 0, 32); err == nil {
			s.Seed = uint32(n)
		} else if v == "murmur3" || v == "crc32" {
			s.HashName = v
		} else if v != "" {
			p.fail("to", "must be a hash seed (a number) or a hash: murmur3 crc32")
		}
	case Route:
		p.need("to")
		s.To = p.rnic("to")
		v, _ := p.get("via")
		for _, w := range strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune(",[] ", r) }) {
			s.Via = append(s.Via, uint16(p.via(w)))
		}
	case DSCP:
		p.need("to")
		s.To = uint32(p.num("to", 0, 63, 0))
	case Blackhole:
		s.DstRNIC = p.rnic("dst")
		if v, ok := p.get("bucket"); ok {
			k, n, frac := strings.Cut(v, "/")
			b, err := strconv.Atoi(k)
			m, err2 := 0, error(nil)
			if frac {
				m, err2 = strconv.Atoi(n)
			}
			if err != nil || err2 != nil || b < 0 || frac && b >= m {
				p.fail("bucket", "must be a member number from 0, or K/N for K of N buckets")
				return
			}
			s.Bucket, s.Buckets = b, m
		}
	}
}

// via reads a port of the target: leaf1:3, leaf1:uplink2 or a number. The plan
// resolves words; here a number after the colon is enough.
func (p *params) via(v string) int {
	if p.f.Dev < 0 {
		p.fail("via", "needs a switch as target")
		return 0
	}
	d := &p.plan.Devices[p.f.Dev]
	_, port, ok := strings.Cut(v, ":")
	if !ok {
		port = v
	}
	if up, ok := strings.CutPrefix(port, "uplink"); ok {
		k, _ := strconv.Atoi(up)
		for i := range d.Ports {
			if d.Ports[i].Class == topology.ClassUplink {
				if k--; k == 0 {
					return d.Ports[i].Num
				}
			}
		}
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > len(d.Ports) {
		p.fail("via", fmt.Sprintf("must be a port of %s: 1 to %d", d.Name, len(d.Ports)))
		return 0
	}
	return n
}

// of returns the share p of a span, rounded down.
func (p prob) of(d clock.Duration) clock.Duration {
	if p.sure {
		return d
	}
	return clock.Duration(prob{hi: uint64(d)}.mul(p).hi)
}

// Forged describes the frames of an inject fault.
type Forged struct {
	Frame    wire.Frame
	Count    int64
	Interval clock.Duration
}

func (p *params) errorf(format string, a ...any) error {
	return fmt.Errorf("%s: fault %s: "+format, append([]any{p.f.Pos, p.f.Name}, a...)...)
}
