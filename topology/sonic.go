package topology

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/topology/sonic"
)

// Layers of switches may name SONiC configuration files: their settings are
// put below the layer's own keys before anything is resolved.

// sonicLayers replaces sonic: and lookup: of every switch layer.
func (r *resolver) sonicLayers() {
	sw := r.root.get("switches")
	if sw == nil || sw.kind != nMap {
		return
	}
	layer := func(e *entry, field string) {
		if e.val.kind == nMap && (e.val.has("sonic") || e.val.has("lookup")) {
			e.val = r.sonicLayer(e.val, join(field, e.key))
		}
	}
	for i := range sw.keys {
		e := &sw.keys[i]
		if e.key != "devices" {
			layer(e, "switches")
			continue
		}
		for k := range e.val.keys {
			layer(&e.val.keys[k], "switches.devices")
		}
	}
}

func (r *resolver) sonicLayer(n *node, field string) *node {
	own := &node{kind: nMap, file: n.file, line: n.line, col: n.col, keys: slices.Clone(n.keys)}
	own.del("sonic")
	own.del("lookup")
	if !n.has("sonic") {
		r.fail(n.get("lookup"), field+".lookup", n.str("lookup"), "belongs to sonic: FILE, which is absent", "")
		return own
	}
	s, at := r.sonicSwitch(n, field)
	if s == nil {
		return own
	}
	if len(s.Notes) > 0 {
		r.warn("sonic-ignored", field, at, "%d remarks on %s: %s", len(s.Notes), at.text, strings.Join(s.Notes, "; "))
	}
	tree, errs := parseTree(at.text, s.Layer())
	r.errs = append(r.errs, errs...)
	restamp(tree, at.file, at.line, at.col)
	r.check(tree, switchLayerSpec(), field)
	return overlay(tree, own)
}

// sonicSwitch reads the files a layer names.
func (r *resolver) sonicSwitch(n *node, field string) (*sonic.Switch, *node) {
	var files []sonic.File
	at := n.get("sonic")
	for _, f := range n.list("sonic") {
		text := r.open(f, field+".sonic")
		if text == nil {
			return nil, nil
		}
		files = append(files, sonic.File{Name: f.text, Text: text})
		at = f
	}
	var lookup *sonic.Lookup
	if l := n.get("lookup"); l != nil && l.kind == nScalar {
		text := r.open(l, field+".lookup")
		if text == nil {
			return nil, nil
		}
		var err error
		if lookup, err = sonic.ParseLookup(l.text, text); err != nil {
			r.fail(l, field+".lookup", "", err.Error(), "")
			return nil, nil
		}
	}
	c, err := sonic.Parse(files, lookup)
	if err != nil {
		r.fail(at, field+".sonic", "", err.Error(), "")
		return nil, nil
	}
	s, err := c.Switch()
	if err != nil {
		var many interface{ Unwrap() []error }
		if !errors.As(err, &many) {
			r.fail(at, field+".sonic", "", err.Error(), "")
			return nil, nil
		}
		for _, e := range many.Unwrap() {
			r.fail(at, field+".sonic", "", e.Error(), "")
		}
		return nil, nil
	}
	return s, at
}

// Sonic describes a switch of the plan in SONiC's terms; what those cannot say
// is in the notes. It fails where a value has no SONiC form at all.
func (p *Plan) Sonic(d *Device) (*sonic.Switch, error) {
	sw := d.Switch
	if sw == nil {
		return nil, fmt.Errorf("%s is an RNIC; a configuration belongs to a switch", d.Name)
	}
	s := &sonic.Switch{Host: d.Name, HWSKU: "rocemu-" + sw.ASIC, ASIC: sw.ASIC, Pool: sw.BufferBytes, HeadroomPool: sw.HeadroomPool}
	s.Notes = append(s.Notes, fmt.Sprintf("cell %d B, %d slices, latency %v, ecmp and forwarding mode have no place in config_db; keep them in the fabric file", sw.Cell, sw.Slices, sw.Latency))
	for i := range d.Ports {
		q, err := p.sonicPort(d, &d.Ports[i], s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.PortName(d.ID, d.Ports[i].Num), err)
		}
		s.Ports = append(s.Ports, q)
	}
	return s, nil
}

func (p *Plan) sonicPort(d *Device, pt *Port, s *sonic.Switch) (sonic.Port, error) {
	c := &p.Cables[pt.Cable]
	mm := c.LengthMM
	if mm == 0 {
		mm = int64(c.Delay / psPerMM)
	}
	q := sonic.Port{
		Name: fmt.Sprintf("Ethernet%d", 4*(pt.Num-1)), Speed: int64(pt.Rate / clock.Mbps), Meters: ceilDiv(mm, 1000), MTU: pt.MTU,
		HasPrios: true, HasMaps: true, HasLossy: true, HasQueues: true, HasDog: pt.PFC.Watchdog != nil,
		DSCPToTC: pt.QoS.DSCPToTC, TCToPG: pt.QoS.TCToPG, TCToQueue: pt.QoS.TCToQueue, PFCToQueue: pt.QoS.PFCToQueue,
	}
	var err error
	if q.Lossy, err = sonicLimit(pt.Lossy.Alpha, pt.Lossy.Limit, s.Pool); err != nil {
		return q, fmt.Errorf("lossy: %w", err)
	}
	for n := range 8 {
		q.Sched[n] = sonic.Sched{Strict: pt.QoS.Sched[n].Strict, Weight: int64(pt.QoS.Sched[n].Weight)}
		q.WRED[n] = sonicWRED(&pt.ECN[n], s)
		if !pt.PFC.Lossless[n] {
			continue
		}
		q.Prios |= 1 << n
		g := sonic.Group{Set: true, Guaranteed: pt.PFC.Guaranteed[n], XONOffset: pt.PFC.XONOffset[n], Headroom: p.headroomCap(d, pt, n)}
		if g.Limit, err = sonicLimit(pt.PFC.Alpha[n], pt.PFC.XOFF[n], s.Pool); err != nil {
			return q, fmt.Errorf("priority %d: %w", n, err)
		}
		q.PG[pt.QoS.TCToPG[n]] = g
	}
	if w := pt.PFC.Watchdog; w != nil {
		ms := func(t clock.Duration) int64 { return int64(t / clock.Millisecond) }
		q.Watchdog = &sonic.Watchdog{Detect: ms(w.Detect), Restore: ms(w.Restore), Poll: ms(w.Poll), Action: w.Action}
	}
	return q, nil
}

// headroomCap is a group's headroom in bytes: its own, or how much of the
// shared headroom pool it may take.
func (p *Plan) headroomCap(d *Device, pt *Port, n int) int64 {
	own := pt.Headroom[n] * d.Switch.Cell
	if d.Switch.HeadroomPool == 0 {
		return own
	}
	most := d.Switch.HeadroomPool
	if d.Switch.CapPerPG > 0 {
		most = min(most, d.Switch.CapPerPG)
	}
	if pt.PFC.Headroom[n] >= 0 {
		most = min(most, own)
	}
	return most
}

// sonicLimit turns a threshold into dynamic_th or static_th.
func sonicLimit(a Alpha, static, pool int64) (sonic.Limit, error) {
	if static > 0 {
		return sonic.Limit{Static: static}, nil
	}
	if a.Num == 0 {
		return sonic.Limit{Static: pool}, nil
	}
	for n := -8; n <= 7; n++ {
		if n < 0 && a.Num<<-n == a.Den || n >= 0 && a.Num == a.Den<<n {
			return sonic.Limit{Dynamic: true, Step: n}, nil
		}
	}
	return sonic.Limit{}, fmt.Errorf("alpha %d/%d has no dynamic_th; allowed: 2^-8 .. 2^7", a.Num, a.Den)
}

func sonicWRED(e *ECN, s *sonic.Switch) *sonic.WRED {
	if !e.On {
		return nil
	}
	note := func(t string) {
		if !slices.Contains(s.Notes, t) {
			s.Notes = append(s.Notes, t)
		}
	}
	pct := int64((e.PMax*100 + 1<<31) >> 32)
	if scaled := uint64(pct) << 32 / 100; max(scaled, e.PMax)-min(scaled, e.PMax) > 1 {
		note(fmt.Sprintf("a marking probability was rounded to %d %%", pct))
	}
	if e.Enqueue || e.Weight != 0 || e.DropMax != 0 {
		note("ecn point, weight and separate drop thresholds have no place in WRED_PROFILE")
	}
	return &sonic.WRED{Min: e.KMin, Max: e.KMax, Percent: pct, ECN: e.Mark, Drop: e.DropNotECT || !e.Mark}
}
