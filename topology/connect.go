package topology

import (
	"fmt"
	"strconv"
	"strings"
)

// What both ends of a queue pair must agree on. With connect: cm the depths
// and timers are negotiated (package qp does the arithmetic when the QP is
// built); what no negotiation can settle is refused here, where the line is
// known.

// checkConnect refuses ends that cannot connect: path MTUs that differ, one
// side without the connection manager, no responder resources for READs and
// atomics, an alternate path on one side only.
func (w *work) checkConnect(l *line, a, b *Device) {
	if a.NIC.MTU != b.NIC.MTU && !l.toldMTU {
		l.toldMTU = true
		w.r.fail(l.n, l.field, strconv.Itoa(a.NIC.MTU), fmt.Sprintf("path MTU %d at %s and %d at %s: both ends of a QP need the same rnics mtu",
			a.NIC.MTU, a.Name, b.NIC.MTU, b.Name)+w.r.ofBoth(a, b, strconv.Itoa(a.NIC.MTU), strconv.Itoa(b.NIC.MTU), "mtu"), "")
	}
	if l.toldCM {
		return
	}
	x, y := &a.NIC.QP, &b.NIC.QP
	no := func(value, format string, args ...any) {
		l.toldCM = true
		w.r.fail(l.n, l.field, value, "connection refused: "+fmt.Sprintf(format, args...), "")
	}
	words := map[bool]string{true: "cm", false: "preset"}
	switch {
	case x.ConnectCM != y.ConnectCM:
		on, off := a.Name, b.Name
		if y.ConnectCM {
			on, off = off, on
		}
		no("connect", "connect: cm at %s but preset at %s; both ends of a QP need the same%s", on, off,
			w.r.ofBoth(a, b, words[x.ConnectCM], words[y.ConnectCM], "qp", "connect"))
	case !x.ConnectCM:
	case (x.AltPort > 0) != (y.AltPort > 0):
		no("alt_path", "an alternate path is offered by one side only: alt_path.port %d at %s, %d at %s (0 = none)%s", x.AltPort, a.Name, y.AltPort, b.Name,
			w.r.ofBoth(a, b, strconv.Itoa(x.AltPort), strconv.Itoa(y.AltPort), "qp", "alt_path"))
	case x.MaxRdAtomic > 0 && y.MaxDestRd == 0:
		no(strconv.Itoa(x.MaxRdAtomic), "initiator depth (max_rd_atomic) %d at %s but responder depth (max_dest_rd_atomic) 0 at %s: no READ or atomic could be answered%s",
			x.MaxRdAtomic, a.Name, b.Name, w.r.origins(
				w.r.ofDevice(a, strconv.Itoa(x.MaxRdAtomic), "qp", "max_rd_atomic"), w.r.ofDevice(b, "0", "qp", "max_dest_rd_atomic")))
	}
}

// ofDevice is the setting of a device, with the value in force.
func (r *resolver) ofDevice(d *Device, text string, keys ...string) said {
	return said{key: strings.Join(keys, ".") + " of " + d.Name, text: text, n: r.plan.settingNode(d, keys...)}
}

// ofBoth says where two devices have a setting from.
func (r *resolver) ofBoth(a, b *Device, x, y string, keys ...string) string {
	return r.origins(r.ofDevice(a, x, keys...), r.ofDevice(b, y, keys...))
}

// checkADP refuses ranges that are not ascending pairs.
func (r *resolver) checkADP(n *node) {
	if n == nil || n.get("ranges") == nil {
		return
	}
	at, last := n.get("ranges"), int64(-1)
	bad := func(x *node, text string) { r.fail(x, "rnics.personality.adp_profile.ranges", x.text, text, "") }
	if len(at.items) > 4 {
		bad(at, "at most four ranges")
	}
	for _, x := range at.items {
		if len(x.items) != 2 {
			bad(x, "a range is [low, high]")
			return
		}
		lo, _ := parseInt(x.items[0].text)
		hi, _ := parseInt(x.items[1].text)
		if lo > hi || lo <= last {
			bad(x.items[0], "ranges must ascend and not overlap, low before high")
			return
		}
		last = hi
	}
}

func decodeADP(n *node) ADPProfile {
	a := ADPProfile{
		Base: n.dur("base"), InitLow: uint8(n.num("init_low")), InitRange: uint8(n.num("init_range")),
		StartIndex: uint8(n.num("start_index")), PerValue: uint8(n.num("timeout_retry_num")), Dec: uint8(n.num("dec")), Total: n.dur("total"),
	}
	if n.get("ranges") == nil {
		return a
	}
	for _, x := range n.get("ranges").items {
		if int(a.NRanges) < len(a.Ranges) && len(x.items) == 2 {
			lo, _ := parseInt(x.items[0].text)
			hi, _ := parseInt(x.items[1].text)
			a.Ranges[a.NRanges] = [2]uint8{uint8(lo), uint8(hi)}
			a.NRanges++
		}
	}
	return a
}
