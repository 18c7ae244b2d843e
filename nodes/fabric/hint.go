package fabric

import (
	"unsafe"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/mem"
)

// hintDevices is the size of a fabric from which its switches do not stay in
// the processor's caches from window to window.
const hintDevices = 512

// ahead is what was worked out of a frame that arrives a little later: where it
// will go. It is a guess for the caches only; forward decides anew.
type ahead struct {
	e    *portState
	port int
	q    uint8
}

// hint asks for the memory that the next arrivals touch: of the fourth the
// frame and its ingress port, of the second its egress port and both accounts,
// of the next its marking. It changes nothing that counts.
func (s *Switch) hint(in *actors.Inbox, out *actors.Outbox) {
	if pn, f := in.Ahead(4); f != nil {
		p := &s.ports[pn-1]
		mem.Of(f)
		mem.Prefetch(unsafe.Pointer(p), 1)
	}
	if n := s.ahead; n.e != nil {
		out.Hint(n.port, true)
		s.ahead = ahead{}
	}
	pn, f := in.Ahead(2)
	if f == nil {
		return
	}
	g := s.group(f.Dst)
	if g < 0 || len(s.live[g]) == 0 {
		return
	}
	m := s.live[g]
	eg := m[0]
	if len(m) > 1 && !s.hash.Spray {
		eg = m[s.hash.Of(f)%uint32(len(m))]
	}
	p, e := &s.ports[pn-1], &s.ports[eg-1]
	tc := p.maps.dscpToTC[f.TOS>>2]
	pg, q := p.maps.tcToPG.of(tc), tc&7
	mem.Prefetch(unsafe.Pointer(e), 3)
	mem.Prefetch(unsafe.Pointer(&e.q[q]), 1)
	mem.Prefetch(unsafe.Pointer(&s.mmu.pg[int(pn-1)<<3+int(pg)]), 1)
	mem.Prefetch(unsafe.Pointer(&s.mmu.q[int(eg-1)<<3+int(q)]), 1)
	out.Hint(int(eg), false)
	s.ahead = ahead{e, int(eg), q}
}
