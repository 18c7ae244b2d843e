package topology

import (
	"fmt"
	"math/big"
	"sort"
	"strings"
)

// Lint looks for settings that run but defeat their purpose. It never changes
// the plan; findings are ordered by code, then place.
func Lint(p *Plan) []Finding {
	l := &linter{p: p, seen: map[string]int{}}
	l.headroom()
	l.quanta()
	l.ecnAndPFC()
	l.oneSided()
	l.seeds()
	l.paths()
	l.paces()
	l.windows()
	for i := range l.out {
		if n := l.seen[l.keys[i]]; n > 1 {
			l.out[i].Text += fmt.Sprintf(" (and %d more like it)", n-1)
		}
	}
	sort.SliceStable(l.out, func(i, j int) bool { return l.out[i].Code < l.out[j].Code })
	return l.out
}

type linter struct {
	p    *Plan
	out  []Finding
	keys []string
	seen map[string]int // findings by kind, so that one mistake is told once
}

// add records a finding; those with the same key are counted, not repeated.
func (l *linter) add(key, code, where string, at *node, format string, a ...any) {
	key = code + "|" + key
	l.seen[key]++
	if l.seen[key] > 1 {
		return
	}
	pos := ""
	if at != nil && at.line > 0 && at.file != "" {
		pos = at.pos()
	}
	l.keys = append(l.keys, key)
	l.out = append(l.out, Finding{code, where, pos, fmt.Sprintf(format, a...)})
}

// headroom compares configured headroom with what the cable can bring.
func (l *linter) headroom() {
	type in struct {
		HeadroomInput
		have int64
	}
	cache := map[HeadroomInput]Headroom{}
	for i := range l.p.Devices {
		d := &l.p.Devices[i]
		if d.Switch == nil {
			continue
		}
		for j := range d.Ports {
			pt := &d.Ports[j]
			for g := range 8 {
				if !pt.PFC.Lossless[g] || pt.PFC.Headroom[g] < 0 {
					continue
				}
				hi := HeadroomInput{Rate: pt.Rate, Prop: pt.Prop, MTU: pt.MTU, Response: pt.PeerResponse, Half: pt.IngressHalf, Cell: d.Switch.Cell}
				h, ok := cache[hi]
				if !ok {
					h = HeadroomAuto(hi)
					cache[hi] = h
				}
				need, have := (h.InFlight+h.Raiser)*hi.Cell, pt.Headroom[g]*hi.Cell
				if have < need {
					l.add(fmt.Sprint(in{hi, have}), "headroom-short", l.p.PortName(d.ID, pt.Num), l.p.settingNode(d, "pfc", "headroom"),
						"headroom of priority %d is short by %d B: %d B configured, %d B needed (%d cells in flight as %d B frames and %d of the frame that raises XOFF; auto sets %d B)",
						g, need-have, have, need, h.InFlight, h.Packet, h.Raiser, h.Bytes)
				}
			}
		}
	}
}

// quanta finds pauses that run out before they are repeated: the repetition,
// half a pause later, may wait for a frame of full size to leave.
func (l *linter) quanta() {
	for i := range l.p.Devices {
		d := &l.p.Devices[i]
		for j := range d.Ports {
			pt := &d.Ports[j]
			if d.Switch == nil || pt.PFC.Lossless == [8]bool{} {
				continue
			}
			span, frame := pt.Rate.Span(int64(pt.PFC.Quanta)*64), pt.Rate.Span(int64(pt.MTU)+overhead)
			if span/2 < frame {
				l.add(fmt.Sprint(pt.PFC.Quanta, pt.Rate, pt.MTU), "quanta-short", l.p.PortName(d.ID, pt.Num), l.p.settingNode(d, "pfc", "quanta"),
					"a pause of %d quanta lasts %v; it is repeated after half of that, when a frame of %d B may take the port for %v: the peer starts again before it is told to wait on", pt.PFC.Quanta, span, pt.MTU, frame)
			}
		}
	}
}

// xoffPoint is the use at which a single congested PG raises XOFF, in bytes.
func xoffPoint(s *Switch, p *PFC, g int) int64 {
	if p.XOFF[g] > 0 {
		return p.XOFF[g] + p.Guaranteed[g]
	}
	a := p.Alpha[g]
	pool := s.BufferBytes / int64(s.Slices)
	x := new(big.Int).Mul(big.NewInt(pool), big.NewInt(a.Num))
	x.Quo(x, big.NewInt(a.Num+a.Den))
	return x.Int64() + p.Guaranteed[g]
}

// ecnAndPFC checks the order of signals: marks should come before pauses, and
// nothing should be dropped before either.
func (l *linter) ecnAndPFC() {
	for i := range l.p.Devices {
		d := &l.p.Devices[i]
		if d.Switch == nil {
			continue
		}
		var low [8]int64 // smallest XOFF point by priority over ingress ports
		for j := range d.Ports {
			for g := range 8 {
				if pf := d.Ports[j].PFC; pf.Lossless[g] {
					if x := xoffPoint(d.Switch, pf, g); low[g] == 0 || x < low[g] {
						low[g] = x
					}
				}
			}
		}
		for j := range d.Ports {
			pt := &d.Ports[j]
			for g := range 8 {
				e := &pt.ECN[pt.QoS.PFCToQueue[g]]
				if low[g] == 0 || !pt.PFC.Lossless[g] || !e.On {
					continue
				}
				key := func() string { return fmt.Sprint(d.Kind, *e, low[g]) }
				if e.Mark && e.KMin > low[g] {
					l.add(key(), "ecn-above-pfc", l.p.PortName(d.ID, pt.Num), l.p.settingNode(d, "ecn"),
						"Kmin %d B of queue %d lies above the XOFF point of priority %d (%d B for one congested group): PFC pauses before ECN marks", e.KMin, pt.QoS.PFCToQueue[g], g, low[g])
				}
				if e.DropMax > 0 && e.DropMin < low[g] || !e.Mark && e.KMin < low[g] {
					l.add(key(), "wred-below-xoff", l.p.PortName(d.ID, pt.Num), l.p.settingNode(d, "ecn"),
						"WRED drop below XOFF on lossless queue %d: it drops from %d B, XOFF of priority %d comes at %d B", pt.QoS.PFCToQueue[g], wredFrom(e), g, low[g])
				}
			}
		}
	}
}

func wredFrom(e *ECN) int64 {
	if e.DropMax > 0 {
		return e.DropMin
	}
	return e.KMin
}

// oneSided finds cables whose ends disagree on the lossless priorities.
func (l *linter) oneSided() {
	for i := range l.p.Cables {
		c := &l.p.Cables[i]
		a, b := &l.p.Devices[c.A].Ports[c.APort-1], &l.p.Devices[c.B].Ports[c.BPort-1]
		if a.PFC == nil || b.PFC == nil || a.PFC.Lossless == b.PFC.Lossless {
			continue
		}
		l.add(fmt.Sprint(l.p.Devices[c.A].Kind, l.p.Devices[c.B].Kind, a.PFC.Lossless, b.PFC.Lossless), "pfc-one-side",
			l.p.PortName(c.A, c.APort), l.p.settingNode(&l.p.Devices[c.A], "pfc", "priorities"),
			"PFC on one side only: %s has priorities %s, %s has %s", l.p.PortName(c.A, c.APort), prios(a.PFC), l.p.PortName(c.B, c.BPort), prios(b.PFC))
	}
}

func prios(p *PFC) string {
	var s []string
	for g, on := range p.Lossless {
		if on {
			s = append(s, fmt.Sprint(g))
		}
	}
	return "[" + strings.Join(s, ", ") + "]"
}

// members reports whether a switch has a choice, and one among an even number.
func members(d *Device) (multi, even bool) {
	for i, g := range d.Groups {
		if d.Floods != nil && d.Floods[i] {
			continue
		}
		multi = multi || len(g) > 1
		even = even || len(g) > 1 && len(g)%2 == 0
	}
	return multi, even
}

// seeds finds consecutive switches that both choose among members with the
// same hash and seed: the second then sees only part of its members. A CRC is
// linear, so that another seed only adds a constant: the low bits by which both
// choose stay tied.
func (l *linter) seeds() {
	multi := func(d *Device) bool { m, _ := members(d); return m }
	for i := range l.p.Devices {
		a := &l.p.Devices[i]
		if a.Switch == nil || a.Switch.ECMP.Spray || !multi(a) {
			continue
		}
		for j := range a.Ports {
			b := &l.p.Devices[a.Ports[j].Peer]
			if b.Switch == nil || b.ID < a.ID || b.Switch.ECMP.Spray || !multi(b) ||
				a.Switch.ECMP.Hash != b.Switch.ECMP.Hash {
				continue
			}
			if a.Switch.ECMP.Seed != b.Switch.ECMP.Seed {
				l.crcSeeds(a, b)
				continue
			}
			l.add(fmt.Sprint(a.Kind, b.Kind), "hash-polarised", a.Name, l.p.settingNode(a, "ecmp", "seed"),
				"%s and %s are consecutive and hash with %s and the same seed %d: paths polarise; seed: auto gives each its own", b.Name, a.Name, a.Switch.ECMP.Hash, a.Switch.ECMP.Seed)
		}
	}
}

// crcSeeds tells that different seeds do not help a CRC.
func (l *linter) crcSeeds(a, b *Device) {
	_, ea := members(a)
	_, eb := members(b)
	if a.Switch.ECMP.Hash != "crc32" || !ea || !eb {
		return
	}
	l.add(fmt.Sprint("crc", a.Kind, b.Kind), "hash-polarised", a.Name, l.p.settingNode(a, "ecmp", "hash"),
		"%s and %s are consecutive and both hash with crc32: different seeds do not help, they only turn the result by a constant, and among an even number of members paths polarise; hash: murmur3 on one of them does", b.Name, a.Name)
}

// settingNode finds where the file sets a key for a device; nil when nowhere.
func (p *Plan) settingNode(d *Device, keys ...string) *node {
	section, layers := "switches", []string{roleNames[d.Kind], "all"}
	if d.Kind == RNIC {
		section, layers = "rnics", []string{"all"}
	}
	if n := p.root.path(append([]string{section, "devices", d.Name}, keys...)...); n != nil {
		return n
	}
	for _, l := range layers {
		if n := p.root.path(append([]string{section, l}, keys...)...); n != nil {
			return n
		}
	}
	return nil
}
