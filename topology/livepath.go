package topology

import (
	"slices"
	"strconv"
	"strings"
)

// liveSwitch and liveNIC are the settings that devices take over while they
// run, below switches.LAYER, switches.LAYER.ports.CLASS and rnics.LAYER.
var (
	liveSwitch = []string{
		"mtu", "buffer.size", "buffer.headroom_pool", "buffer.cap_per_pg", "buffer.reserve_off", "qos.dscp_to_tc", "qos.scheduler",
		"pfc.alpha", "pfc.xoff", "pfc.guaranteed", "pfc.xon_offset", "pfc.headroom", "pfc.quanta", "lossy", "ecn", "ecmp",
	}
	livePG  = []string{"alpha", "xoff", "guaranteed", "xon_offset", "headroom"}
	liveNIC = []string{
		"cnp_dscp", "dcqcn", "swift", "pfc.priorities", "pfc.quanta", "rx_buffer", "ack", "host",
		"qp.timeout", "qp.retry_cnt", "qp.rnr_retry", "qp.min_rnr_timer", "qp.timeout_mode", "qp.timeout_window", "qp.timeout_floor",
		"qp.rnr_decode", "qp.dup_ack", "qp.rnr_early", "qp.recv_repost", "personality.nak_latency", "personality.read_nak_latency",
		"personality.react_latency", "personality.ack_freq_log", "personality.retry7_infinite", "personality.nak_reload",
		"personality.nack_triggers_cnp", "personality.cnp_floor", "personality.slow_restart",
	}
)

// liveText tells what can change live.
func liveText() string {
	return "can change while the fabric runs: switches.all|leaf|spine|core|devices.NAME[.ports.CLASS].{" + strings.Join(liveSwitch, " ") +
		" pfc.PRIORITY.…}, rnics.all|devices.NAME.{" + strings.Join(liveNIC, " ") + "}"
}

// covers returns the devices that a path addresses, or why it cannot change.
func (p *Plan) covers(path string) ([]int32, *faultErr) {
	steps := strings.Split(path, ".")
	bad := func(msg string) ([]int32, *faultErr) { return nil, &faultErr{"set", path, msg, ""} }
	if len(steps) < 3 || steps[0] != "switches" && steps[0] != "rnics" {
		if near := p.nearPath(steps); near != "" {
			return nil, &faultErr{"set", path, "must begin with switches or rnics and whose setting it is: all, leaf, spine, core or devices.NAME", near}
		}
		return bad("cannot change while the fabric runs; " + liveText())
	}
	nic := steps[0] == "rnics"
	layer, rest := steps[1], steps[2:]
	if layer == "devices" {
		if len(rest) < 2 {
			return bad("names no setting of a device")
		}
		layer, rest = rest[0], rest[1:]
		d := p.Device(layer)
		if d == nil || (d.Kind == RNIC) != nic {
			return nil, &faultErr{"set", path, "no such device in this section", p.nearPath(steps)}
		}
		return []int32{d.ID}, liveSetting(path, nic, rest)
	}
	var out []int32
	for i := range p.Devices {
		d := &p.Devices[i]
		if (d.Kind == RNIC) == nic && (layer == "all" || !nic && layer == roleNames[d.Kind]) {
			out = append(out, d.ID)
		}
	}
	if len(out) == 0 {
		return nil, &faultErr{"set", path, "addresses no device; below " + steps[0] + " stands all" + map[bool]string{false: ", leaf, spine, core"}[nic] + " or devices.NAME", p.nearPath(steps)}
	}
	return out, liveSetting(path, nic, rest)
}

// liveSetting checks the part of a path below its layer.
func liveSetting(path string, nic bool, rest []string) *faultErr {
	list := liveNIC
	if !nic {
		if list = liveSwitch; rest[0] == "ports" && len(rest) > 2 {
			rest = rest[2:]
		}
		if len(rest) == 3 && rest[0] == "pfc" && slices.Contains(livePG, rest[2]) {
			if _, err := strconv.Atoi(rest[1]); err == nil {
				return nil
			}
		}
	}
	have := strings.Join(rest, ".")
	for _, k := range list {
		if have == k || strings.HasPrefix(have, k+".") {
			return nil
		}
	}
	near := nearest(have, list)
	if near != "" {
		near = strings.TrimSuffix(path, have) + near
	}
	return &faultErr{"set", path, "cannot change while the fabric runs; " + liveText(), near}
}

// nearPath is the path of a setting that was meant by one whose beginning is
// wrong, "" = no idea.
func (p *Plan) nearPath(steps []string) string {
	section, rest := p.nearSection(steps)
	var names []string
	switch {
	case len(rest) > 1 && rest[0] == "devices":
		rest = rest[1:]
	case section == "rnics":
		names = switchLayers[:1]
	default:
		names = switchLayers
	}
	if section == "" || len(rest) < 2 {
		return ""
	}
	names = slices.Clone(names)
	for i := range p.Devices {
		names = append(names, p.Devices[i].Name)
	}
	near := nearest(rest[0], names)
	if d := p.Device(near); d != nil {
		own := "switches"
		if d.Kind == RNIC {
			own = "rnics"
		}
		if own != section && near != rest[0] { // two guesses are none
			return ""
		}
		section, near = own, "devices."+near
	}
	path := strings.Join(append([]string{section, near}, rest[1:]...), ".")
	if near == "" || path == strings.Join(steps, ".") {
		return ""
	}
	return path
}

// nearSection is the section that was meant, and the path below it, which may be
// all there is.
func (p *Plan) nearSection(steps []string) (string, []string) {
	switch first := steps[0]; {
	case first == "all" && liveSetting("", true, steps[1:]) == nil:
		return "rnics", steps
	case slices.Contains(switchLayers, first) || p.Device(first) != nil:
		return "switches", steps
	case first == "nic": // too short to be near
		return "rnics", steps[1:]
	}
	return nearest(steps[0], []string{"switches", "rnics"}), steps[1:]
}

// switchLayers are the groups of switches below their section.
var switchLayers = []string{"all", "leaf", "spine", "core"}
