package fault

import (
	"cmp"
	"slices"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

// Phase says what happened to a fault.
type Phase uint8

// Phases of an [Event].
const (
	Started   Phase = iota // took effect
	Ended                  // its time or count is over: the setting before it is back
	LinkFell               // the ports of Event.Ports lost their link
	LinkRose               // they have it again
	Rejoined               // they may be members of ECMP groups again (after hold)
	Beat                   // a pause storm repeats its XOFF
	Withdrawn              // routing told this switch to avoid the broken cables ([Device.Broken])
	Restored               // and to use them again
	Forge                  // an inject fault's next frame is due
)

// Event is one step of the schedule. The device acts on it at its time.
type Event struct {
	Spec  *Spec
	Phase Phase
}

// life is where a fault stands on one device.
type life uint8

const (
	planned life = iota
	active
	ended
)

// state is one fault on one device.
type state struct {
	*Spec
	life   life
	spent  bool   // its count is used up; the End event is still due
	down   bool   // it holds links of this device down
	blind  bool   // they are down and the device has not noticed
	told   bool   // a remote switch avoids the cables
	away   bool   // they are up again and not yet members of ECMP groups
	hits   uint64 // frames it acted on
	seen   uint64 // frames that matched
	fired  int64  // inject: frames sent
	next   clock.Time
	member clock.Time // when away ends
	stop   clock.Time // when the fault ended
	ber    berTable
}

func (st *state) due() clock.Time { return min(st.next, st.member) }

// Device is the schedule of the faults of one device and the wire state of its
// ports. Zero faults cost one branch a frame ([Device.Busy]).
type Device struct {
	id    int32
	dev   *topology.Device
	all   []*state // in order of (name, index)
	ends  []End    // by port number - 1
	next  clock.Time
	queue []Event
	held  heldFrames
	spent bool // a count was used up while a frame was judged
	// Emit takes the records of hits, starts and ends. It must be set.
	Emit func(record.Record)
	// Bucket returns the ECMP hash of a frame at this device; nil on an RNIC.
	Bucket func(*wire.Frame) uint32
}

// NewDevice builds the schedule of device id with the plan's faults.
func NewDevice(plan *topology.Plan, id int32, specs []Spec) *Device {
	dev := &plan.Devices[id]
	d := &Device{id: id, dev: dev, next: clock.Never, ends: make([]End, len(dev.Ports)), Emit: func(record.Record) {}}
	for i := range d.ends {
		d.ends[i].init(plan, dev, i)
	}
	for i := range specs {
		d.Add(&specs[i])
	}
	return d
}

// beatOf is how often a storm at a port (0 = all ports) repeats its XOFF: after
// half the shortest pause, but never faster than every second slot of a PFC
// frame.
func beatOf(dev *topology.Device, port int) clock.Duration {
	q := int64(0xffff)
	if dev.NIC != nil && dev.NIC.Quanta != 0 {
		q = int64(dev.NIC.Quanta)
	}
	beat, floor := clock.Duration(clock.Never), clock.Duration(0)
	for i := range dev.Ports {
		p := &dev.Ports[i]
		if port != 0 && port != p.Num {
			continue
		}
		n := q
		if p.PFC != nil && p.PFC.Quanta != 0 {
			n = int64(p.PFC.Quanta)
		}
		beat = min(beat, p.Rate.Span(n*64)/2)
		floor = max(floor, 2*p.Rate.Span(wire.PFCFrame+wire.Overhead))
	}
	return max(beat, floor)
}

// Add puts a fault into the schedule if it touches this device. Live faults
// come through it between windows; their start lies at or after the window's.
func (d *Device) Add(s *Spec) {
	if !s.On(d.id) {
		return
	}
	st := &state{Spec: s, next: s.At, member: clock.Never, stop: clock.Never}
	st.ber.bit = s.Prob
	i, _ := slices.BinarySearchFunc(d.all, st, cmpState)
	d.all = slices.Insert(d.all, i, st)
	d.next = min(d.next, s.At)
}

func cmpState(a, b *state) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Index, b.Index))
}

// Clear ends a fault at t, or takes it out of the schedule when it has not
// started: the live form of its `for`.
func (d *Device) Clear(index int32, t clock.Time) {
	for _, st := range d.all {
		if st.Index != index || st.life == ended {
			continue
		}
		if st.life == planned {
			st.life, st.next, st.stop = ended, clock.Never, t
			continue
		}
		c := *st.Spec
		c.Until = min(c.Until, t)
		st.Spec = &c
		st.next = min(st.next, t)
		d.next = min(d.next, st.next)
	}
}

// Next is when Step must be called next; Never when nothing is left.
func (d *Device) Next() clock.Time { return d.next }

// NextFault is the next start or end, storms' repetitions left out.
func (d *Device) NextFault() clock.Time {
	t := clock.Never
	for _, st := range d.all {
		if st.life == active && st.Kind == PauseStorm && !st.spent {
			t = min(t, st.Until)
			continue
		}
		t = min(t, st.due())
	}
	return t
}

// NextWork is the next frame that faults will let loose: a delayed or a forged
// one. Starts and ends of faults are no work: a run does not wait for them.
func (d *Device) NextWork() clock.Time {
	t := d.held.next()
	for _, st := range d.all {
		if st.Kind == Inject && st.life != ended {
			t = min(t, st.next)
		}
	}
	return t
}

// Step moves every fault whose time has come, in name order, and returns what
// the device must act on. The slice is valid until the next call.
func (d *Device) Step(now clock.Time) []Event {
	d.queue = d.queue[:0]
	if now < d.next {
		return d.queue
	}
	d.next = clock.Never
	for _, st := range d.all {
		for st.due() <= now {
			d.move(st, now)
		}
		d.next = min(d.next, st.due())
	}
	d.rebuild(now)
	return d.queue
}

func (d *Device) push(st *state, p Phase) { d.queue = append(d.queue, Event{st.Spec, p}) }

// move takes one step of one fault and sets when its next one is due.
func (d *Device) move(st *state, now clock.Time) {
	switch {
	case st.member <= now:
		st.member, st.away = clock.Never, false
		d.push(st, Rejoined)
	case st.spent:
		st.spent, st.next = false, clock.Never
		d.over(st, now)
	case st.life == planned:
		d.start(st, now)
	case st.told && now >= st.Until:
		st.told, st.next = false, clock.Never
		st.life, st.stop = ended, st.Until
		d.push(st, Restored)
	case st.remoteOn(d.id) && st.life == active:
		st.told, st.next = true, st.recovery()
		d.push(st, Withdrawn)
	case st.life == ended: // a device has booted
		st.next = clock.Never
		d.rise(st, now)
	case now >= st.Until:
		st.life, st.stop, st.next = ended, now, clock.Never
		d.note(st, record.FaultEnd, now)
		d.over(st, now)
	case st.Kind == LinkFlap:
		d.toggle(st, now)
	case st.Kind == PauseStorm:
		d.push(st, Beat)
		st.next = min(now.Add(beatOf(d.dev, st.Port)), st.Until)
	case st.Kind == Inject:
		d.fire(st)
	case st.blind:
		d.notice(st)
		st.next = st.Until
	default:
		st.next = st.Until
	}
}

func (d *Device) start(st *state, now clock.Time) {
	if st.Until <= st.At {
		st.life, st.next, st.stop = ended, clock.Never, now
		return
	}
	st.life, st.next = active, st.Until
	if st.remoteOn(d.id) {
		st.next = now.Add(st.Withdraw)
		return
	}
	d.note(st, record.FaultStart, now)
	d.push(st, Started)
	switch st.Kind {
	case LinkDown, OneWay, DeviceDown, Drain:
		d.fall(st, now)
		if st.blind {
			st.next = min(now.Add(st.Detect), st.Until)
		}
	case LinkFlap:
		d.fall(st, now)
		st.next = min(now.Add(st.DownFor), st.Until)
	case PauseStorm:
		d.push(st, Beat)
		st.next = min(now.Add(beatOf(d.dev, st.Port)), st.Until)
	case Inject:
		d.fire(st)
	}
}

// recovery is when the cables of a fault are members again everywhere.
func (s *Spec) recovery() clock.Time { return s.Until.Add(s.Boot + s.Hold) }

// over undoes a fault that has ended: links rise now, or after the boot time.
func (d *Device) over(st *state, now clock.Time) {
	d.push(st, Ended)
	if !st.down {
		return
	}
	if st.Boot > 0 {
		st.next = now.Add(st.Boot)
		return
	}
	d.rise(st, now)
}

// fire sends the due frame of an inject fault.
func (d *Device) fire(st *state) {
	d.push(st, Forge)
	st.fired++
	st.hits++
	st.next = min(st.forgeNext(st.fired), st.Until)
	if st.fired >= st.Forge.Count {
		st.life, st.stop, st.next = ended, st.forgeNext(st.fired-1), clock.Never
	}
}

// toggle moves a flapping link between down and up: each period starts down.
func (d *Device) toggle(st *state, now clock.Time) {
	k := int64(now.Sub(st.At)) / int64(st.Period)
	begin := st.At.Add(clock.Duration(k) * st.Period)
	if up := begin.Add(st.DownFor); now < up {
		d.fall(st, now)
		st.next = min(up, st.Until)
		return
	}
	d.rise(st, now)
	st.next = min(begin.Add(st.Period), st.Until)
}
