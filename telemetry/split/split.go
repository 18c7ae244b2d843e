// Package split tells where each flow's time went: host, pipeline,
// serialisation, fibre, queue, pause, retransmission, adding up to the flow's
// completion time exactly. It watches the frames of chosen queue pairs on every
// cable (taps between windows, nothing in the model) and walks back from the
// completion along what each event waited for. The frames may be read in other
// processes and come as [Sighting]s. Start at [New].
package split

import (
	"cmp"
	"slices"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

// Part numbers a share.
type Part int

// Shares of a flow's time.
const (
	Host           Part = iota // waiting in an RNIC: pacing, window, other queue pairs, the answer's way out
	Pipeline                   // fixed latency of RNICs and switches
	Serialisation              // bits onto cables
	Fibre                      // propagation
	Queue                      // waiting in switches, pauses apart
	Pause                      // waiting while the port was paused by PFC
	Retransmission             // from a loss to the last packet sent again for it, at the sender
	NumParts
)

// Names of the parts.
var Names = [NumParts]string{"host", "pipeline", "serialisation", "fibre", "queue", "pause", "retransmission"}

// Limits: larger workloads are watched in part.
const (
	MaxFlows   = 64
	MaxPackets = 200_000 // of all watched flows together
	MaxCables  = 512     // of a fabric; beyond, nothing is watched
	maxSteps   = 1 << 22 // of one walk
)

// Split is a flow's time.
type Split struct {
	Flow  int32
	Start clock.Time
	End   clock.Time
	Parts [NumParts]clock.Duration
}

// pair is a watched queue pair.
type pair struct {
	index int32
	q     *topology.QP
	flow  int32
	prio  uint8
	notes
	sides   [2][]*frame // by sender: responder, requester; in order of sent
	trouble []interval
}

type interval struct{ from, to clock.Time }

// Watcher collects what splits are made of.
type Watcher struct {
	plan   *topology.Plan
	ends   *ends
	list   []*pair
	cables []cable
	first  []int32 // by device: the number of its first cable
	pauses map[place][]interval
	since  clock.Time // frames before it were not seen
}

type end struct{ rnic, qpn uint32 }

type place struct {
	dev  int32
	port uint16
	prio uint8
}

// cable is one direction of a cable: the port that a frame leaves.
type cable struct {
	port *topology.Port
	dev  int32
}

// New watches the flows of a plan that fit the limits; nil when none does.
func New(plan *topology.Plan) *Watcher {
	if len(plan.Cables) > MaxCables {
		return nil
	}
	w := &Watcher{plan: plan, ends: newEnds(2 * MaxFlows), pauses: map[place][]interval{}}
	left := int64(MaxPackets)
	for i := range plan.Flows {
		fl := &plan.Flows[i]
		if len(w.list) == MaxFlows {
			break
		}
		if fl.Transport != topology.RC || fl.QP < 0 || fl.Count < 1 || len(plan.QPs[fl.QP].Flows) != 1 {
			continue
		}
		q := &plan.QPs[fl.QP]
		if n := fl.Count * (fl.Size/int64(q.MTU) + 1); n <= left {
			left -= n
			w.add(q, fl)
		}
	}
	if len(w.list) == 0 {
		return nil
	}
	for i := range plan.Devices {
		d := &plan.Devices[i]
		w.first = append(w.first, int32(len(w.cables)))
		for p := range d.Ports {
			w.cables = append(w.cables, cable{&d.Ports[p], int32(i)})
		}
	}
	return w
}

func (w *Watcher) add(q *topology.QP, fl *topology.Flow) {
	p := &pair{index: int32(len(w.list)), q: q, flow: fl.ID}
	p.prio = w.plan.Devices[w.plan.RNICs[q.A-1]].NIC.PrioOf[fl.DSCP&63]
	w.ends.set(end{q.A, q.AQPN}, p, false)
	w.ends.set(end{q.B, q.BQPN}, p, true)
	w.list = append(w.list, p)
}

// Records keeps pauses and the spans of retransmission.
func (w *Watcher) Records(batch []record.Record) {
	for i := range batch {
		r := &batch[i]
		switch r.Kind {
		case record.PauseStart:
			k := place{r.Dev, r.Port, r.Prio}
			w.pauses[k] = append(w.pauses[k], interval{r.At, clock.Never})
		case record.PauseEnd:
			if s := w.pauses[place{r.Dev, r.Port, r.Prio}]; len(s) > 0 && s[len(s)-1].to == clock.Never {
				s[len(s)-1].to = r.At
			}
		case record.Drop, record.Timeout, record.NakRecv, record.RnrRecv, record.ImpliedNak, record.Retransmit:
			if p := w.ends.slot(end{r.Dst, r.QPN}).pair; p != nil {
				p.troubled(r)
			}
		}
	}
}

// troubled extends the spans of trouble: each begins with a loss or an RNR and
// lasts while packets are sent again.
func (p *pair) troubled(r *record.Record) {
	n := len(p.trouble)
	switch {
	case r.Kind == record.Retransmit && n > 0:
		p.trouble[n-1].to = clock.Max(p.trouble[n-1].to, r.At)
	case r.Kind == record.Drop && n > 0 && r.At <= p.trouble[n-1].to:
	case r.Kind == record.Drop || n == 0:
		p.trouble = append(p.trouble, interval{r.At, r.At})
	default:
		p.trouble[n-1].to = clock.Max(p.trouble[n-1].to, r.At)
	}
}

// Since says that what happened before t was not seen: a fabric that was saved
// then goes on. Flows that began before have no split.
func (w *Watcher) Since(t clock.Time) { w.since = t }

// Finish walks every watched flow whose requests all completed.
func (w *Watcher) Finish(done []sim.Sample) []Split {
	spans := map[int32]interval{}
	for _, s := range done {
		iv, ok := spans[s.Flow]
		if !ok {
			iv = interval{s.Start, s.End}
		}
		spans[s.Flow] = interval{clock.Min(iv.from, s.Start), clock.Max(iv.to, s.End)}
	}
	var out []Split
	for _, p := range w.list {
		iv, ok := spans[p.flow]
		if !ok || iv.from < w.since {
			continue
		}
		w.order(p)
		out = append(out, w.walk(p, iv.from, iv.to))
	}
	return out
}

// order computes when each frame was dequeued at its sender and sorts them.
func (w *Watcher) order(p *pair) {
	for i := range p.frames.n {
		f := p.frames.at(i)
		port := w.cables[f.tap].port
		f.slot = port.Rate.Span(int64(f.len) + wire.Overhead)
		f.sent = f.first.Add(-fixed(port, f.slot))
		side := 0
		if f.toward {
			side = 1
		}
		p.sides[side] = append(p.sides[side], f)
	}
	for _, s := range p.sides {
		slices.SortFunc(s, func(a, b *frame) int {
			return cmp.Or(cmp.Compare(a.sent, b.sent), cmp.Compare(a.psn, b.psn), cmp.Compare(a.index, b.index), cmp.Compare(a.iter, b.iter), cmp.Compare(a.op, b.op))
		})
	}
}

// fixed is the time from dequeue to the far end's state; slot is the frame's
// serialisation where it started.
func fixed(p *topology.Port, slot clock.Duration) clock.Duration {
	if p.PeerCutThrough {
		slot = min(slot, p.Rate.Span(wire.MinFrame))
	}
	return p.EgressHalf + slot + p.Prop + p.PeerIngressHalf
}
