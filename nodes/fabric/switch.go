package fabric

import (
	"math/bits"
	"sort"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/port"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

type wireFrame = wire.Frame

// DefaultRecords bounds the notes of one switch.
const DefaultRecords = 1 << 16

// Options are what a run adds to the plan.
type Options struct {
	MaxRecords int    // 0 = DefaultRecords
	Faults     Faults // nil = none
	// Timeline holds the changes of settings; nil = none will come.
	Timeline *topology.Timeline
}

// Switch is a leaf, spine or core as an actor: a shared-buffer packet switch
// with PFC, ECN, ECMP and a PFC watchdog. All state is in values; it never
// looks outside.
type Switch struct {
	ports []portState
	route []int16  // by destination RNIC number - 1: group, -1 = none
	only  []uint16 // by group: its one live member, 0 = look closer
	live  [][]uint16
	avoid [][]uint16 // by destination RNIC number - 1: members left after withdrawals, nil = all; nil without any
	mmu   *MMU
	pool  chunkPool
	work  wakes  // slots 0…P-1 held frames, P…2P-1 the ports' next dequeue
	timer alarms // slots 8·port+PG refresh, 8·P+8·port+queue watchdog polls

	chain    actors.Chain
	cellMul  uint64
	hash     Hasher
	events   uint64
	hops     uint64
	dropped  Count
	copied   Count // frames that flooding made
	lastWork clock.Time
	cut      bool
	down     bool
	odd      bool // some fault may have a say in where frames go, see look
	watched  bool // some port has a watchdog
	ecnOff   bool

	faults Faults
	router Router

	ahead   ahead
	wait    waits
	drops   [record.NumReasons]uint64
	rec     []record.Record
	lostRec uint64
	recSeq  uint32
	maxRec  int

	id     int32
	name   string
	groups [][]uint16
	plan   *topology.Device
	seed   uint64

	pfcFrame wire.Frame // the one that is being sent
	timeline *topology.Timeline
	adopted  clock.Time // when settings changed last, Never = not yet
}

// Hasher is the ECMP setting and its per-packet counter.
type Hasher struct {
	CRC   bool
	Spray bool
	Seed  uint32
	n     uint64 // sprayed packets
}

// portState is one port. What every frame touches comes first and fills a cache
// line, then what every frame that leaves touches: two or three lines of the port
// and one of its queue. An odd number of lines in all keeps the ports of a switch from
// sharing the same few places in the caches.
type portState struct {
	nonEmpty uint8  // queues that hold frames
	pfcOn    uint8  // priorities with PFC
	xoffSent uint8  // PGs whose XOFF was announced
	ident    bool   // PFC priority n stops queue n
	upOut    bool   // frames may be sent
	pfcOff   bool   // fault: PFC neither sent nor honoured
	hasDog   bool   // a watchdog runs
	member   bool   // ECMP may choose the port
	mtu      uint16 // largest L
	holding  bool
	seam     bool // wire is set
	outage   bool // outages has some
	turns    bool // sched has had to choose among queues by weight
	maps     maps
	rx, tx   Count // see counts

	port port.Port
	*portCold
	_ [16]byte
	q [8]queue
	_ [64]byte
}

// portCold is what few frames touch. It lies apart: in a large fabric each port
// would take a page of memory, and a processor remembers where some thousand
// pages are.
type portCold struct {
	sched   Scheduler
	wred    *[8]WRED
	wire    Wire
	quanta  uint16
	dog     *[8]Watchdog
	dogOf   [8]uint8 // queue → priority whose watchdog guards it
	pgPrios [8]uint8 // priorities that XOFF of a PG pauses
	outages outages
	held    wire.Frame
	heldTo  decision
	plan    *topology.Port
	pfcToQ  [8]uint8 // PFC priority → queue
	c       PortCount
}

// maps is the classification of a port: TC → PG on ingress, TC → queue on
// egress, DSCP → TC as frames come in. Ports with equal tables share one.
type maps struct {
	tcToPG    classes
	tcToQueue classes
	dscpToTC  *[64]uint8
}

// classes maps eight classes to one of eight each, four bits a class.
type classes uint32

func newClasses(m [8]uint8) (c classes) {
	for i, v := range m {
		c |= classes(v&7) << (4 * i)
	}
	return c
}

func (c classes) of(class uint8) uint8 { return uint8(c>>(class&7<<2)) & 7 }

// counts brings the counters that frames move beside their way up to date.
func (p *portState) counts() *PortCount {
	p.c.Rx, p.c.Tx = p.rx, p.tx
	for n := range p.q {
		p.c.Queue[n].Tx = p.q[n].sent
	}
	return &p.c
}

// setTable makes a port's DSCP table, that of its neighbour if it is the same.
func (s *Switch) setTable(i int, t *[64]uint8) {
	p := &s.ports[i]
	if i > 0 && *s.ports[i-1].maps.dscpToTC == *t {
		p.maps.dscpToTC = s.ports[i-1].maps.dscpToTC
		return
	}
	own := *t
	p.maps.dscpToTC = &own
}

func (p *portState) lossless(prio int) bool { return p.plan.PFC.Lossless[prio] }

// New builds the switch of device dev.
func New(plan *topology.Plan, dev int32, o Options) *Switch {
	d := &plan.Devices[dev]
	n := len(d.Ports)
	s := &Switch{
		ports: make([]portState, n), route: d.Route, groups: d.Groups,
		id: dev, name: d.Name, plan: d, seed: clock.HashString(plan.Seed, d.Name),
		chain: actors.NewChain(plan.Seed, d.Name), cut: d.Switch.CutThrough,
		faults: o.Faults, maxRec: o.MaxRecords, timeline: o.Timeline, adopted: clock.Never,
	}
	if s.maxRec == 0 {
		s.maxRec = DefaultRecords
	}
	s.hash = Hasher{CRC: d.Switch.ECMP.Hash == "crc32", Spray: d.Switch.ECMP.Spray, Seed: d.Switch.ECMP.Seed}
	cold := make([]portCold, n)
	for i := range d.Ports {
		s.ports[i].portCold = &cold[i]
		s.initPort(i)
	}
	s.mmu = NewMMU(s.memory())
	s.cellMul = 1<<32/uint64(d.Switch.Cell) + 1
	s.work = newWakes(s.ranks(), n)
	if s.cut {
		s.work = newWakes(s.ranks(), 0)
	}
	s.timer = newAlarms(16*n, nil)
	s.ahead = newAhead(len(s.groups), n)
	s.live, s.only = make([][]uint16, len(s.groups)), make([]uint16, len(s.groups))
	s.relive()
	s.initWaits()
	s.cableErrors(plan)
	return s
}

func (s *Switch) initPort(i int) {
	p, pp := &s.ports[i], &s.plan.Ports[i]
	p.plan, p.upOut, p.member = pp, true, true
	p.mtu = uint16(min(pp.MTU, 1<<16-1))
	p.quanta = pp.PFC.Quanta
	p.maps.tcToPG, p.maps.tcToQueue = newClasses(pp.QoS.TCToPG), newClasses(pp.QoS.TCToQueue)
	s.setTable(i, &pp.QoS.DSCPToTC)
	p.pfcToQ = pp.QoS.PFCToQueue
	p.ident = true
	for n := range 8 {
		p.ident = p.ident && p.pfcToQ[n] == uint8(n)
		if pp.PFC.Lossless[n] {
			p.pfcOn |= 1 << n
			g := p.maps.tcToPG.of(uint8(n))
			p.pgPrios[g] |= 1 << n
			p.dogOf[p.pfcToQ[n]] = uint8(n)
		}
		p.c.PFC[n].rxSince, p.c.PFC[n].txSince = clock.Never, clock.Never
		p.c.PG[n].FirstXOFF = clock.Never
	}
	p.port = port.New(pp, p.pfcOn != 0)
	p.sched = NewScheduler(&pp.QoS.Sched, int(p.mtu))
	if w := pp.PFC.Watchdog; w != nil && p.pfcOn != 0 {
		p.dog, p.hasDog, s.watched = new([8]Watchdog), true, true
		for n := range 8 {
			p.dog[n] = NewWatchdog(w)
		}
	}
	s.initWRED(p, pp, i)
}

func (s *Switch) initWRED(p *portState, pp *topology.Port, i int) {
	if pp.ECN == nil {
		return
	}
	var w [8]WRED
	any := false
	for n := range w {
		w[n] = s.newWRED(pp, i, n)
		any = any || w[n].Active()
	}
	if any {
		p.setWRED(&w)
	}
}

// setWRED gives the queues their AQM.
func (p *portState) setWRED(w *[8]WRED) {
	p.wred = w
	for n := range w {
		p.q[n].setAQM(&w[n])
	}
}

func (s *Switch) newWRED(pp *topology.Port, i, q int) WRED {
	return NewWRED(&pp.ECN[q], clock.Mix(s.seed, uint64(i+1), uint64(q)))
}

// ranks orders held frames before dequeues, inside by a keyed hash of the port.
func (s *Switch) ranks() []int32 {
	n := len(s.ports)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	sort.Slice(order, func(a, b int) bool {
		x, y := clock.Mix(s.seed, uint64(order[a]), 0x72616e6b), clock.Mix(s.seed, uint64(order[b]), 0x72616e6b)
		return x < y || x == y && order[a] < order[b]
	})
	r := make([]int32, 2*n)
	for k, i := range order {
		r[i], r[n+i] = int32(k), int32(n+k)
	}
	return r
}

// Advance processes every event before end: faults, arrivals, held frames,
// dequeues, timers, in this order at one instant.
func (s *Switch) Advance(end clock.Time, in *actors.Inbox, out *actors.Outbox, st *actors.Status) {
	last := st.LastEvent
	s.look()
	if s.wait.counting {
		s.wait.rest()
	}
	far := in.Far()
	if far {
		s.beginAhead(end, in, out)
	}
	for {
		at, tw, tt := in.Next(), s.work.next(), s.timer.next()
		if s.faults != nil {
			if tf := s.faults.Next(); tf < end && tf <= at && tf <= tw && tf <= tt {
				s.faults.Apply(tf, s, out)
				s.look()
				s.events++
				last = tf
				continue
			}
		}
		switch {
		case at < end && at <= tw && at <= tt:
			last = at
			f, pn := in.Take()
			if far {
				s.lookAhead(in, out)
			}
			s.arrive(at, pn, f, out)
		case tw < end && tw <= tt:
			last = tw
			if slot := s.work.top() - len(s.ports); slot >= 0 {
				s.serve(tw, slot, out)
			} else {
				s.lastWork = tw
				s.releaseHeld(tw, slot+len(s.ports), out)
			}
		case tt < end:
			last = tt
			s.doTimer(tt, out)
		default:
			st.LastEvent = last
			s.status(st)
			return
		}
		s.events++
	}
}

// look notes whether frames go their usual way: only faults change that.
func (s *Switch) look() {
	s.odd = s.down || s.avoid != nil || s.router != nil
}

func (s *Switch) status(st *actors.Status) {
	st.NextWork = s.nextWork()
	st.Next = min(s.work.next(), s.timer.next())
	if s.faults != nil {
		st.NextFault = s.faults.NextFault()
		st.Next, st.NextWork = min(st.Next, s.faults.Next()), min(st.NextWork, s.faults.NextWork())
	}
	st.LastWork, st.Events, st.Hops = s.lastWork, s.events, s.hops
}

// Chain returns the digest chain.
func (s *Switch) Chain() actors.Chain { return s.chain }

// Name and ID identify the device.
func (s *Switch) Name() string { return s.name }

// ID returns the device id in the plan.
func (s *Switch) ID() int32 { return s.id }

// nextWork is the earliest held frame or dequeue. A port whose frames are all
// paused until then waits for its peer, which may refresh the pause for ever:
// that is no work (model-rules, "Ends").
func (s *Switch) nextWork() clock.Time {
	t := s.work.next()
	if t == clock.Never || !s.waitsForPause(s.work.top(), t) {
		return t
	}
	t = clock.Never
	s.work.each(func(slot int, at clock.Time) {
		if at < t && !s.waitsForPause(slot, at) {
			t = at
		}
	})
	return t
}

func (s *Switch) waitsForPause(slot int, at clock.Time) bool {
	if slot < len(s.ports) {
		return false
	}
	p := &s.ports[slot-len(s.ports)]
	return p.nonEmpty&^p.pausedQueues(at-1) == 0
}

func (s *Switch) doTimer(now clock.Time, out *actors.Outbox) {
	slot := s.timer.top()
	if n := 8 * len(s.ports); slot >= n {
		s.poll(now, slot-n, out)
	} else {
		s.refresh(now, slot, out)
	}
}

// wakeSlot is the port's slot for its next dequeue.
func (s *Switch) wakeSlot(i int) int { return len(s.ports) + i }

// pausedQueues returns the mask of queues that PFC stops at now.
func (p *portState) pausedQueues(now clock.Time) uint8 {
	if !p.port.MayPause() {
		return 0
	}
	return p.stopped(now)
}

func (p *portState) stopped(now clock.Time) uint8 {
	m := p.port.PausedMask(now)
	if m == 0 {
		return 0
	}
	if p.hasDog {
		for b := m; b != 0; b &= b - 1 {
			if n := bits.TrailingZeros8(b); p.dog[n].Ignoring() {
				m &^= 1 << n
			}
		}
	}
	if p.pfcOff {
		return 0
	}
	if p.ident {
		return m
	}
	var q uint8
	for ; m != 0; m &= m - 1 {
		q |= 1 << p.pfcToQ[bits.TrailingZeros8(m)]
	}
	return q
}
