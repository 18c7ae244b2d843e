package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/rocemu/rocemu/clock"
)

// couple tells every port about its peer, sizes headroom, and derives the
// synchronisation window.
func (r *resolver) couple() {
	p := r.plan
	w := clock.Duration(clock.Never)
	for i := range p.Devices {
		d := &p.Devices[i]
		for j := range d.Ports {
			pt := &d.Ports[j]
			f := p.far(pt)
			pt.PeerIngressHalf, pt.PeerEgressHalf, pt.PeerResponse = f.IngressHalf, f.EgressHalf, f.Response
			if s := p.Devices[pt.Peer].Switch; s != nil {
				pt.PeerCutThrough = s.CutThrough
			}
			if pt.Response < pt.EgressHalf {
				r.contradict(r.root, "", fmt.Sprintf("pfc.response must be at least half the pipeline latency of %s (%v): it includes the egress half", d.Name, pt.EgressHalf), "",
					said{key: "pfc.response", text: pt.Response.String(), n: r.portSetting(d, pt, "pfc", "response")},
					said{key: "latency", text: (pt.EgressHalf + pt.IngressHalf).String(), n: r.plan.settingNode(d, "latency")})
			}
			w = min(w, pt.EgressHalf+pt.Prop+pt.PeerIngressHalf, pt.pfcLatency())
		}
	}
	r.plan.Window = max(w, 1)
	r.plan.Settle = 4 * r.plan.Window
	if w < 100*clock.Nanosecond {
		r.warn("short-window", r.shortest(w), r.root.get("topology"), "fixed latency of only %v: windows this short make the run slow; longer cables or a pipeline latency help", w)
	}
	r.headrooms()
}

// pfcLatency is the smallest time from a PFC frame's generation here to its
// first effect at the peer: the cable, and the peer's response less its egress
// half (the frame acts at the peer's scheduler). The frame's own time does not
// count: a fault or a live change may raise the rate.
func (p *Port) pfcLatency() clock.Duration {
	return p.Prop + p.PeerResponse - p.PeerEgressHalf
}

// shortest names a cable with the smallest latency.
func (r *resolver) shortest(w clock.Duration) string {
	for i := range r.plan.Devices {
		d := &r.plan.Devices[i]
		for j := range d.Ports {
			pt := &d.Ports[j]
			if pt.EgressHalf+pt.Prop+pt.PeerIngressHalf == w || pt.pfcLatency() == w {
				return r.plan.PortName(d.ID, pt.Num)
			}
		}
	}
	return ""
}

// settingNode is [Plan.settingNode] that always has an answer.
func (r *resolver) settingNode(d *Device, keys ...string) *node {
	if n := r.plan.settingNode(d, keys...); n != nil {
		return n
	}
	return r.root
}

// headrooms resolves headroom per PG and checks each switch's budget.
func (r *resolver) headrooms() {
	type key struct {
		pfc            *PFC
		rate           clock.Rate
		prop, response clock.Duration
		mtu            int
		cell           int64
		latency        clock.Duration
	}
	auto := map[key]int64{}
	var told []*node
	for i := range r.plan.Devices {
		d := &r.plan.Devices[i]
		s := d.Switch
		if s == nil {
			continue
		}
		var sum, configured int64 // as held, in cells; as asked for, in bytes
		for j := range d.Ports {
			pt := &d.Ports[j]
			for g := range 8 {
				if !pt.PFC.Lossless[g] {
					continue
				}
				h := pt.PFC.Headroom[g]
				if h >= 0 {
					pt.Headroom[g] = (h + s.Cell - 1) / s.Cell // what must hold so many bytes
				} else {
					k := key{pt.PFC, pt.Rate, pt.Prop, pt.PeerResponse, pt.MTU, s.Cell, s.Latency}
					if auto[k] == 0 {
						auto[k] = HeadroomAuto(HeadroomInput{pt.Rate, pt.Prop, pt.MTU, pt.PeerResponse, pt.IngressHalf, s.Cell, 0}).Cells
					}
					pt.Headroom[g] = auto[k]
				}
				if h < 0 {
					h = pt.Headroom[g] * s.Cell
				}
				sum += pt.Headroom[g] + pt.PFC.Guaranteed[g]/s.Cell
				configured += h + pt.PFC.Guaranteed[g]
			}
		}
		at := r.settingNode(d, "buffer", "size")
		if !slices.Contains(told, at) && r.overBudget(d, sum*s.Cell, configured) {
			told = append(told, at)
		}
	}
}

// overBudget reports a switch whose reservations exceed its memory.
func (r *resolver) overBudget(d *Device, sum, configured int64) bool {
	s := d.Switch
	of := func(key string, bytes int64) said {
		n := r.plan.settingNode(d, "buffer", key)
		return said{key: "switches.buffer." + key, text: cmp.Or(text(n), fmt.Sprintf("%dB", bytes)), n: n}
	}
	size := of("size", s.BufferBytes)
	if s.HeadroomPool > 0 {
		if s.HeadroomPool <= s.BufferBytes {
			return false
		}
		r.contradict(r.root, "", fmt.Sprintf("%s: headroom pool %d > buffer %d", d.Name, s.HeadroomPool, s.BufferBytes), "", of("headroom_pool", s.HeadroomPool), size)
		return true
	}
	if sum <= s.BufferBytes {
		return false
	}
	var lossless int
	for j := range d.Ports {
		for g := range 8 {
			if d.Ports[j].PFC.Lossless[g] {
				lossless++
			}
		}
	}
	all := []said{size}
	for _, k := range []string{"headroom", "guaranteed", "priorities"} {
		for j := range d.Ports {
			if n := r.portSetting(d, &d.Ports[j], "pfc", k); n != nil && !slices.ContainsFunc(all, func(x said) bool { return x.n == n }) {
				all = append(all, said{key: "switches.pfc." + k, text: text(n), n: n})
			}
		}
	}
	r.contradict(r.root, "",
		fmt.Sprintf("%s: headroom + reserved %d > buffer %d (%d lossless priority groups); needs a buffer of at least %d, fewer lossless ports, shorter cables, or headroom_pool",
			d.Name, configured, s.BufferBytes, lossless, sum), fmt.Sprintf("%dKiB", (sum+1023)/1024), all...)
	return true
}

// portSetting is what gave a port its setting: under ports, by number or class,
// or its device's.
func (r *resolver) portSetting(d *Device, pt *Port, keys ...string) *node {
	for _, name := range []string{strconv.Itoa(pt.Num), classNames[pt.Class]} {
		if n := r.plan.settingNode(d, append([]string{"ports", name}, keys...)...); n != nil && d.Kind != RNIC {
			return n
		}
	}
	return r.plan.settingNode(d, keys...)
}
