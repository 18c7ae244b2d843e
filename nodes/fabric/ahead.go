package fabric

import (
	"unsafe"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/mem"
	"github.com/rocemu/rocemu/clock"
)

// ahead is what memory was asked for in this visit. In a large fabric a switch
// finds the ports that it used in its last visit in main memory, where each first
// touch costs as much as forwarding a frame; which they are shows a frame ahead.
type ahead struct {
	groups []uint64 // a bit for each route group
	ports  []uint64 // a bit for each egress port
}

func newAhead(groups, ports int) ahead {
	return ahead{groups: make([]uint64, (groups+63)/64), ports: make([]uint64, (ports+63)/64)}
}

// first says whether i was not in a set, and puts it there.
func first(set []uint64, i uint) bool {
	w, b := &set[i>>6], uint64(1)<<(i&63)
	if *w&b != 0 {
		return false
	}
	*w |= b
	return true
}

// Hint asks for what every visit touches of a switch itself (actors.Hinter): first
// the switch, then its wake-ups and route groups.
func (s *Switch) Hint(level int) {
	switch level {
	case 0:
		mem.Own(unsafe.Pointer(s), int(unsafe.Sizeof(*s)+mem.Line-1)/mem.Line)
	case 1:
		ask(s.work.pair)
		ask(s.work.when)
		ask(s.work.slot)
		ask(s.work.of)
		ask(s.only)
		ask(s.timer.heap)
		mem.Own(unsafe.Pointer(s.mmu), int(unsafe.Sizeof(*s.mmu)+mem.Line-1)/mem.Line)
	}
}

// ask hints at a whole slice, if it is not too long.
func ask[T any](s []T) {
	var t T
	if n := len(s) * int(unsafe.Sizeof(t)); n > 0 {
		mem.Own(unsafe.Pointer(unsafe.SliceData(s)), min((n+mem.Line-1)/mem.Line, askLines))
	}
}

// askLines is how many lines of a slice are asked for at most.
const askLines = 32

// beginAhead begins a visit: it asks for what arrivals touch of their ports.
// Classes are taken as port 1 has them for what comes first: a wrong guess costs a
// hint.
func (s *Switch) beginAhead(end clock.Time, in *actors.Inbox, out *actors.Outbox) {
	clear(s.ahead.groups)
	clear(s.ahead.ports)
	f, _ := in.Peek()
	if f == nil {
		return
	}
	m := &s.ports[0].maps
	tc := m.dscpToTC[f.TOS>>2]
	pg, q := int(m.tcToPG.of(tc)), int(m.tcToQueue.of(tc))
	for k, t := range s.work.when { // those that hold frames
		if n := int(s.work.slot[k]) - len(s.ports) + 1; t < end && n > 0 {
			first(s.ahead.ports, uint(n)-1)
			s.fetch(n, q, out)
		}
	}
	in.Each(func(port int) {
		mem.Own(unsafe.Pointer(&s.ports[port-1]), 1)
		mem.Own(unsafe.Pointer(&s.mmu.pg[(port-1)<<3+pg]), 1)
	})
	for k, t := range s.work.when {
		if n := int(s.work.slot[k]) - len(s.ports) + 1; t < end && n > 0 {
			s.ports[n-1].q[q].hint()
		}
	}
	s.lookAhead(in, out)
}

// lookAhead asks for what the next arrival touches of the ports that it may go
// out by.
func (s *Switch) lookAhead(in *actors.Inbox, out *actors.Outbox) {
	f, _ := in.Peek()
	if f == nil {
		return
	}
	k := f.Dst - 1
	if k >= uint32(len(s.route)) {
		return
	}
	g := uint(s.route[k])
	if w := g >> 6; w < uint(len(s.ahead.groups)) && s.ahead.groups[w]>>(g&63)&1 == 0 {
		s.ahead.groups[w] |= 1 << (g & 63)
		some := s.only[g : g+1]
		if some[0] == 0 {
			some = s.live[g]
		}
		s.approach(some, f.TOS>>2, out)
	}
}

// approach asks for what a frame touches that leaves by one of some ports.
func (s *Switch) approach(some []uint16, dscp uint8, out *actors.Outbox) {
	m := &s.ports[0].maps
	q := int(m.tcToQueue.of(m.dscpToTC[dscp]))
	for _, n := range some {
		if !first(s.ahead.ports, uint(n)-1) {
			continue
		}
		s.fetch(int(n), q, out)
	}
}

func (s *Switch) fetch(n, q int, out *actors.Outbox) {
	e := unsafe.Pointer(&s.ports[n-1])
	mem.Own(e, 3)
	mem.OwnAt(e, unsafe.Offsetof(portState{}.q)+uintptr(q)*unsafe.Sizeof(queue{}), 1)
	mem.Own(unsafe.Pointer(&s.mmu.q[(n-1)<<3+q]), 1)
	out.Hint(n)
}
