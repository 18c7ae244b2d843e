package chaos

import (
	"fmt"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

// use is a flow of the workload as it ran without faults: what a fault must meet
// in place and time to act on anything.
type use struct {
	plan     *topology.Plan
	flow     *topology.Flow
	from, to clock.Time // when it has something on the way
	requests int64
	legs     []sim.Leg // of its data
}

// draw picks a flow.
func (s *source) draw(plan *topology.Plan, clean *report.Result) (*use, error) {
	f := &plan.Flows[s.next(len(plan.Flows))]
	u := &use{plan: plan, flow: f, from: f.Start, to: clock.Time(clean.VirtualNS), requests: max(f.Count, 1)}
	if l := clean.Flows[plan.Lines[f.Line].Name]; l != nil {
		u.from = max(u.from, clock.Time(l.FirstStartNS))
		if end := clock.Time(l.LastEndNS); end > u.from {
			u.to = min(u.to, end)
		}
		if l.FCT != nil && f.Gate < 0 && f.Count > 0 { // one of many, perhaps, at its own time
			turns := (f.Count + int64(max(f.Window, 1)) - 1) / int64(max(f.Window, 1))
			span := clock.Duration(turns)*clock.Duration(l.FCT.P50) + clock.Duration(f.Count-1)*f.Interval
			u.to = min(u.to, u.from.Add(span))
		}
	}
	u.to = max(u.to, u.from+1)
	var err error
	if u.legs, err = sim.WayOf(plan, f); err != nil {
		return nil, fmt.Errorf("line %s: %w", plan.Lines[f.Line].Name, err)
	}
	return u, nil
}

// span is how long it runs.
func (u *use) span() clock.Duration { return u.to.Sub(u.from) }

// gap is the time from one request to the next.
func (u *use) gap() clock.Duration { return u.span() / clock.Duration(u.requests) }

// time draws an instant at which the flow has a while to go.
func (s *source) time(u *use) clock.Duration {
	return clock.Duration(u.from) + s.span(0, u.span()*3/4)
}

// beforeRequest draws an instant just before one of the flow's requests begins.
func (s *source) beforeRequest(u *use) clock.Duration {
	k := s.next(int(min(u.requests, 1<<20)))
	return max(clock.Duration(u.from)+clock.Duration(k)*u.gap()-clock.Microsecond, 0)
}

// sender and receiver are the RNICs at the ends of the flow's data, target the
// one that its requests are for.
func (u *use) sender() *topology.Device { return &u.plan.Devices[u.legs[0].Dev] }

func (u *use) receiver() *topology.Device {
	l := u.legs[len(u.legs)-1]
	return &u.plan.Devices[u.plan.Devices[l.Dev].Ports[l.Out-1].Peer]
}

func (u *use) target() *topology.Device { return u.plan.RNIC(u.flow.To) }

// leg draws a cable of the way, by the port that the data leaves.
func (s *source) leg(u *use) (*topology.Device, *topology.Port) {
	l := u.legs[s.next(len(u.legs))]
	d := &u.plan.Devices[l.Dev]
	return d, &d.Ports[l.Out-1]
}

// bridge draws a switch of the way.
func (s *source) bridge(u *use) string {
	return u.plan.Devices[u.legs[1+s.next(len(u.legs)-1)].Dev].Name
}

// chooser draws a switch that has a choice for the flow; "" = none has.
func (s *source) chooser(u *use) string {
	var all []string
	for _, l := range u.legs {
		if l.Hashed && !l.Spray {
			all = append(all, u.plan.Devices[l.Dev].Name)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return s.pick(all...)
}

// frames is about how many frames of the flow pass in a span, and of how many
// bytes.
func (u *use) frames(d clock.Duration) (n, bytes int64) {
	packet := int64(u.plan.RNIC(u.flow.From).NIC.MTU)
	if u.flow.Packet > 0 {
		packet = int64(u.flow.Packet)
	}
	const headers = 64
	each := (max(u.flow.Size, 1) + packet - 1) / packet // of a request
	passing := max(u.requests*min(int64(1000*d/u.span()), 1000)/1000, 1)
	if u.requests == 1 {
		each = max(each*min(int64(1000*d/u.span()), 1000)/1000, 1)
	}
	return passing * each, passing * each * (min(packet, u.flow.Size) + headers)
}

// chance is a probability: 1 in so many.
type chance struct {
	word string
	in   int64
}

// expected is the number of hits that a chance should have.
const expected = 5

// likely draws a chance of those given, in rising order, at which some of n
// events are expected; the last when none is high enough.
func (s *source) likely(n int64, all ...chance) string {
	for len(all) > 1 && n/expected < all[0].in {
		all = all[1:]
	}
	return all[s.next(len(all))].word
}

// Missed says in a result which of the drawn faults acted on nothing: others
// before them may have moved what they were meant for.
func Missed(faults []topology.Fault, res *report.Result) {
	for i := range faults {
		f := &faults[i]
		if !report.CountsHits(f.Kind) {
			continue
		}
		if r, ran := res.Faults[f.Name]; !ran || r.Hits == 0 {
			res.Findings = append(res.Findings, report.Finding{
				Code: "chaos-missed", Where: f.Target, Text: f.Name + " acted on nothing: " + f.String(),
			})
		}
	}
}
