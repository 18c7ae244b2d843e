package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rocemu/rocemu/report"
)

// root is where a chain of pauses begins: a device that pauses and is not
// itself held by another for long.
type root struct {
	port   string // device:port that pauses
	at     string // device:port that it holds
	share  float64
	frames uint64   // XOFF
	faults []string // of the pausing device: NAME (KIND TARGET)
	nic    bool
}

// rootShare is the part of a run below which a pause is not followed further.
const rootShare = 0.2

// pausing are the kinds of faults that make a device pause its peers.
var pausing = []string{"pause-storm", "slow-receiver", "pcie-stall", "buffer"}

// rootOf follows pauses from a place (an RNIC, or a switch's port), nil when
// counters do not tell who pauses it.
func (r *Run) rootOf(where string) *root {
	var last *root
	for seen := map[string]bool{}; where != "" && !seen[where]; {
		seen[where] = true
		h := r.holder(where)
		if h == nil {
			return last
		}
		last = h
		if h.nic || len(h.faults) > 0 {
			return h
		}
		dev, _, _ := strings.Cut(h.port, ":")
		where = r.heldMost(dev, h.port)
	}
	return last
}

// holder finds what pauses a place: the other end of its cable.
func (r *Run) holder(where string) *root {
	dev, num, _ := strings.Cut(where, ":")
	if r.Result.RNICs[dev] != nil {
		return r.switchOver(dev)
	}
	sw := r.Result.Switches[dev]
	if sw == nil || sw.Ports[num] == nil || sw.Ports[num].Peer == "" {
		return nil
	}
	p := sw.Ports[num]
	h := &root{port: p.Peer, at: where}
	for _, c := range p.PFC {
		h.add(c.RxPause, c.RxPauseNS)
	}
	return r.finish(h)
}

// switchOver finds the switch port that pauses an RNIC most.
func (r *Run) switchOver(nic string) *root {
	var best *root
	for _, sw := range slices.Sorted(maps.Keys(r.Result.Switches)) {
		ports := r.Result.Switches[sw].Ports
		for _, num := range slices.Sorted(maps.Keys(ports)) {
			if !strings.HasPrefix(ports[num].Peer, nic+":") {
				continue
			}
			h := &root{port: sw + ":" + num, at: ports[num].Peer}
			for _, c := range ports[num].PFC {
				h.add(c.TxPause, c.TxPauseNS)
			}
			if best == nil || h.share > best.share {
				best = h
			}
		}
	}
	if best == nil {
		return nil
	}
	return r.finish(best)
}

func (h *root) add(frames uint64, span report.NS) {
	h.frames += frames
	h.share = max(h.share, float64(span))
}

// finish turns the longest time into a share and looks up the device's faults.
func (r *Run) finish(h *root) *root {
	if h.frames == 0 || r.Result.VirtualNS <= 0 {
		return nil
	}
	h.share /= float64(r.Result.VirtualNS)
	dev, _, _ := strings.Cut(h.port, ":")
	h.nic = r.Result.RNICs[dev] != nil
	for _, name := range slices.Sorted(maps.Keys(r.Result.Faults)) {
		f := r.Result.Faults[name]
		if slices.Contains(pausing, f.Kind) && (f.Target == dev || f.Target == h.port) {
			h.faults = append(h.faults, fmt.Sprintf("%s (%s %s)", name, f.Kind, f.Target))
		}
	}
	return h
}

// heldMost is the port of a switch that was paused longest, "" when none was
// for long.
func (r *Run) heldMost(dev, but string) string {
	best, most := "", rootShare*float64(r.Result.VirtualNS)
	if sw := r.Result.Switches[dev]; sw != nil {
		for _, num := range slices.Sorted(maps.Keys(sw.Ports)) {
			for _, c := range sw.Ports[num].PFC {
				if where := dev + ":" + num; float64(c.RxPauseNS) > most && where != but {
					best, most = where, float64(c.RxPauseNS)
				}
			}
		}
	}
	return best
}

// fact says what the counters say of it.
func (h *root) fact() string {
	s := fmt.Sprintf("%s paused %s with %s, %.1f %% of the run", h.port, h.at, count(int(h.frames), "XOFF frame"), 100*h.share)
	if len(h.faults) > 0 {
		s += ": fault " + strings.Join(h.faults, ", ")
	}
	return s
}

// advice says what to look at.
func (h *root) advice() string {
	dev, _, _ := strings.Cut(h.port, ":")
	switch {
	case len(h.faults) > 0:
		return fmt.Sprintf("%s pauses, by fault %s; a PFC watchdog at %s ends a storm", dev, strings.Join(h.faults, ", "), h.at)
	case h.nic:
		return fmt.Sprintf("%s pauses: a slow receiver, or a storm that a PFC watchdog at %s ends", dev, h.at)
	}
	return fmt.Sprintf("%s pauses and is not itself held for long: the congestion is at its queues", dev)
}

// victim is the finding that a line was blocked behind others, "" without one.
func (r *Run) victim(line string) string {
	for _, f := range r.Result.Findings {
		if f.Code == "head-of-line-victim" && f.Where == line {
			return f.Text
		}
	}
	return ""
}
