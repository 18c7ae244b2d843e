package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rocemu/rocemu/report"
)

// Link is one direction of a cable as its counters show it.
type Link struct {
	From    string  `json:"from"` // device:port that sends
	To      string  `json:"to"`   // device:port that receives
	Sent    uint64  `json:"sent"`
	Got     uint64  `json:"got"`
	Bad     uint64  `json:"crc_errors"`
	Missing uint64  `json:"missing"` // sent and never seen
	Rate    float64 `json:"rate"`    // (bad + missing) / sent
	Text    string  `json:"text"`
}

// inFlight is how many frames may be on a cable when counters are read.
const inFlight = 64

// Links ranks cable directions by what they lose, from counters alone: no
// record and no fault is looked at. Clean ones are left out.
func (r *Run) Links() []Link {
	var out []Link
	for _, name := range slices.Sorted(maps.Keys(r.Result.Switches)) {
		sw := r.Result.Switches[name]
		for _, num := range slices.Sorted(maps.Keys(sw.Ports)) {
			p := sw.Ports[num]
			if l, ok := r.into(name+":"+num, p); ok {
				out = append(out, l)
			}
			if l, ok := r.outOf(name+":"+num, p); ok {
				out = append(out, l)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Link) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.From, b.From))
	})
	return out
}

// into judges the direction that ends at a switch port.
func (r *Run) into(port string, p *report.PortCounters) (Link, bool) {
	l := Link{From: p.Peer, To: port, Got: p.RxFrames, Bad: p.CRC}
	l.Sent = r.sentBy(p.Peer, p.RxFrames)
	return l.judge()
}

// outOf judges the direction from a switch port to an RNIC; between switches
// it is the other end's into.
func (r *Run) outOf(port string, p *report.PortCounters) (Link, bool) {
	dev, _, _ := strings.Cut(p.Peer, ":")
	n := r.Result.RNICs[dev]
	if n == nil {
		return Link{}, false
	}
	l := Link{From: port, To: p.Peer, Sent: p.TxFrames, Got: p.TxFrames, Bad: n.RxDiscardsPhy}
	if n.RxPackets+inFlight < p.TxFrames && n.RxPackets > 0 || n.RxPackets == 0 && p.TxFrames > 0 {
		l.Got = n.RxPackets + n.RxDiscardsPhy
	}
	return l.judge()
}

// sentBy is what the far end put on the cable; got when its counters do not
// tell (an RNIC counts RoCE only).
func (r *Run) sentBy(peer string, got uint64) uint64 {
	dev, num, _ := strings.Cut(peer, ":")
	if sw := r.Result.Switches[dev]; sw != nil && sw.Ports[num] != nil {
		return sw.Ports[num].TxFrames
	}
	if n := r.Result.RNICs[dev]; n != nil && num == "1" {
		return max(n.TxPackets, got)
	}
	return got
}

func (l Link) judge() (Link, bool) {
	if l.Sent > l.Got+inFlight || l.Got == 0 && l.Sent > 0 {
		l.Missing = l.Sent - l.Got
	}
	if l.Bad+l.Missing == 0 {
		return l, false
	}
	l.Rate = float64(l.Bad+l.Missing) / float64(max(l.Sent, 1))
	var why []string
	if l.Bad > 0 {
		why = append(why, strconv.FormatUint(l.Bad, 10)+" damaged")
	}
	if l.Missing > 0 {
		why = append(why, strconv.FormatUint(l.Missing, 10)+" never arrived")
	}
	l.Text = fmt.Sprintf("%s > %s: %s of %d frames (%.3g)", l.From, l.To, strings.Join(why, ", "), l.Sent, l.Rate)
	return l, true
}
