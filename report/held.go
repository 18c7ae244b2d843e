package report

import "strings"

// Held is what the ports facing an RNIC counted of its pauses: a NIC counts
// the frames it sends, not the time they hold its switch.
type Held struct {
	Ports []string // switch ports at the other ends of its cables
	Span  [8]NS    // time they were paused, by priority
}

// HeldByRNICs returns the pauses of every RNIC by its name.
func (r *Result) HeldByRNICs() map[string]*Held {
	out := map[string]*Held{}
	for _, dev := range sortedKeys(r.Switches) {
		ports := r.Switches[dev].Ports
		for _, num := range sortedKeys(ports) {
			nic, _, _ := strings.Cut(ports[num].Peer, ":")
			if r.RNICs[nic] == nil {
				continue
			}
			h := out[nic]
			if h == nil {
				h = &Held{}
				out[nic] = h
			}
			h.Ports = append(h.Ports, dev+":"+num)
			for i, prio := range classKeys {
				if c := ports[num].PFC[prio]; c != nil {
					h.Span[i] += c.RxPauseNS
				}
			}
		}
	}
	return out
}
