package coord

import (
	"sort"
	"time"
)

// wish notes that a slot is to move to another member, which happens at the
// next checkpoint: its new owner starts from there and hardly anything is
// executed twice.
func (s *State) wish(e *Entry) Result {
	r := s.Run
	if e.Slot < 0 || e.Slot >= len(r.Slots) {
		return refuse("slot %d: must be 0 to %d", e.Slot, len(r.Slots)-1)
	}
	x, m := &r.Slots[e.Slot], s.Members[e.To]
	switch {
	case m == nil || !m.Up:
		return refuse("no process %q is up", e.To)
	case m.NoSlots:
		return refuse("%s coordinates only", e.To)
	case len(m.Devices) > 0:
		return refuse("%s hosts its pinned devices only", e.To)
	case m.Build != r.Spec.Build:
		return refuse("%s is build %s, the run wants %s", e.To, m.Build, r.Spec.Build)
	case x.Done != nil:
		return refuse("slot %d is at its end", e.Slot)
	case x.Owner == e.To:
		x.Next = ""
		return Result{At: r.Grant}
	}
	x.Next = e.To
	if r.Plan == nil {
		r.Plan = &Ckpt{B: r.Grant}
	}
	return Result{At: r.Plan.B}
}

// granted moves the slots that wait for a checkpoint, which was just committed.
func (s *State) granted() {
	r := s.Run
	for i := range r.Slots {
		x := &r.Slots[i]
		if m := s.Members[x.Next]; x.Next != "" && x.Done == nil && m != nil && m.Up {
			x.Owner, x.Inc = x.Next, x.Inc+1
			r.Moves++
		}
		x.Next = ""
	}
}

// balancer watches how busy the members are.
type balancer struct {
	run  string
	at   time.Time
	cpu  map[string]int64
	over int // measurements in a row that were out of balance
}

const (
	balanceEvery = 10 * time.Second
	balanceAfter = 6 // measurements
)

// rebalance asks for a planned move when one member was much busier than the
// mean for a minute: a slot that failed over goes to who came back.
func (l *leader) rebalance() {
	b := &l.balance
	now := time.Now()
	if now.Sub(b.at) < balanceEvery {
		return
	}
	var run string
	var slots []Slot
	l.n.rep.View(func(s *State) {
		if r := s.Run; r != nil && r.Phase == Running && !r.Paused {
			run, slots = r.Spec.ID, append([]Slot(nil), r.Slots...)
		}
	})
	cpu := map[string]int64{}
	l.mu.Lock()
	for name, h := range l.beats {
		cpu[name] = h.CPU
	}
	l.mu.Unlock()
	old := b.cpu
	fresh := b.run != run || old == nil
	b.at, b.cpu, b.run = now, cpu, run
	if run == "" || fresh {
		b.over = 0
		return
	}
	loads := map[string]int64{}
	for name, t := range cpu {
		loads[name] = max(0, t-old[name])
	}
	slot, to, ok := relieve(l.up(l.n.cfg.Build), slots, loads)
	if !ok {
		b.over = 0
		return
	}
	if b.over++; b.over < balanceAfter {
		return
	}
	b.over = 0
	l.n.log.Info("out of balance", "slot", slot, "from", slots[slot].Owner, "to", to)
	l.commit(&Entry{Kind: KindWish, Run: run, Slot: slot, To: to})
}

// relieve picks a slot of the busiest member for the idlest one, when the
// busiest takes over 1.3 times the mean and the move makes that less. Load is
// processor time for the same wall time.
func relieve(members []*Member, slots []Slot, load map[string]int64) (slot int, to string, ok bool) {
	var free []*Member
	for _, m := range members {
		if len(m.Devices) == 0 {
			free = append(free, m)
		}
	}
	if len(free) < 2 {
		return 0, "", false
	}
	per := func(m *Member) int64 { return load[m.Name] / int64(cores(m)) }
	sort.SliceStable(free, func(i, j int) bool { return per(free[i]) < per(free[j]) })
	sum := int64(0)
	for _, m := range free {
		sum += per(m)
	}
	idle, busy := free[0], free[len(free)-1]
	if 10*per(busy)*int64(len(free)) <= 13*sum {
		return 0, "", false
	}
	weight, best := int64(0), -1
	for i, s := range slots {
		if s.Owner != busy.Name || s.Done != nil {
			continue
		}
		weight += max(1, s.Weight)
		if best < 0 || s.Weight < slots[best].Weight {
			best = i
		}
	}
	if best < 0 || weight == max(1, slots[best].Weight) { // its only slot
		return 0, "", false
	}
	moved := load[busy.Name] / weight * max(1, slots[best].Weight)
	if (load[idle.Name]+moved)/int64(cores(idle)) >= per(busy) {
		return 0, "", false
	}
	return best, idle.Name, true
}
