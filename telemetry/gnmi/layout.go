package gnmi

import (
	"slices"
	"sync"

	"github.com/rocemu/rocemu/report/counters"
)

// layout is what all samples of a switch have in common, worked out at the
// first: samples of a run keep the order of their points.
type layout struct {
	from  int           // first of the device's points in a sample
	n     int           // of them
	at    map[place]int // position among them
	marks []mark
	mark  map[place]int // position in marks
	ports []int         // numbers, in order

	once   sync.Once
	leaves []ocLeaf

	mu        sync.Mutex
	templates map[string]*template // of COUNTERS_DB paths that were asked for
}

// openconfig lists the leaves; who asks first has them built.
func (l *layout) openconfig() []ocLeaf {
	l.once.Do(func() { l.leaves = openconfig(l) })
	return l.leaves
}

// mark is a watermark: its point, and that of the gauge that it is the largest
// of, or noGauge.
type mark struct{ at, gauge int }

const noGauge = -1

// fits reports whether the points of a sample are where they were.
func (l *layout) fits(n *counters.Snapshot, dev int32) bool {
	end := l.from + l.n
	return end <= len(n.Points) && n.Points[l.from].Dev == dev && n.Points[end-1].Dev == dev &&
		(end == len(n.Points) || n.Points[end].Dev != dev) && (l.from == 0 || n.Points[l.from-1].Dev != dev)
}

// newLayout finds the points of a device, nil when it has none.
func newLayout(n *counters.Snapshot, dev int32) *layout {
	of := func(p counters.Point) bool { return p.Dev == dev }
	l := &layout{from: slices.IndexFunc(n.Points, of), at: map[place]int{}, mark: map[place]int{}}
	if l.from < 0 {
		return nil
	}
	for i, p := range n.Points[l.from:] {
		if !of(p) {
			break
		}
		l.at[placeOf(p)] = i
		l.n++
		if port := int(p.Port); port > 0 && !slices.Contains(l.ports, port) {
			l.ports = append(l.ports, port)
		}
	}
	slices.Sort(l.ports)
	for i, p := range n.Points[l.from : l.from+l.n] {
		id, ok := markOf[p.ID]
		if !ok {
			continue
		}
		m := mark{i, noGauge}
		if g, ok := l.at[place{int(p.Port), int(p.Index), id}]; ok && id != p.ID {
			m.gauge = g
		}
		l.mark[placeOf(p)] = len(l.marks)
		l.marks = append(l.marks, m)
	}
	return l
}

// place names one value of a switch.
type place struct {
	port, index int
	id          counters.ID
}

func placeOf(p counters.Point) place { return place{int(p.Port), int(p.Index), p.ID} }

// markOf pairs a watermark with the gauge that it is the largest of.
var markOf = map[counters.ID]counters.ID{
	counters.QueueMark: counters.QueueOccupancy, counters.PGSharedMark: counters.PGOccupancy, counters.PoolMark: counters.PoolOccupancy,
	counters.PGHeadroomMark: counters.PGHeadroomMark,
}
