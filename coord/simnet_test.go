package coord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rocemu/rocemu/actors/natsbus"
	"github.com/rocemu/rocemu/clock"
)

// simWeather is how the bus treats messages at present.
type simWeather struct {
	loss, dup float64
	lo, hi    time.Duration // delay
}

// simMsg is a message that a node published and the driver has not taken up.
type simMsg struct {
	from    *simLife
	subject string
	reply   string
	data    []byte
}

func (a *simMsg) before(b *simMsg) bool {
	if a.from != b.from {
		return a.from.id < b.from.id
	}
	if a.subject != b.subject {
		return a.subject < b.subject
	}
	if a.reply != b.reply {
		return a.reply < b.reply
	}
	return bytes.Compare(a.data, b.data) < 0
}

// simSub is a subscription of one life.
type simSub struct {
	l       *simLife
	subject string
	queue   string
	c       chan *nats.Msg
	q       chan *request
}

// simCut is what is wrong with a connection: nothing comes in, nothing goes out.
type simCut struct{ in, out bool }

// A process has two connections, as a node has.
const (
	simCtl = iota
	simBatches
)

func simConn(subject string) int {
	if strings.HasPrefix(subject, "emu.b.") || strings.HasPrefix(subject, "emu.n.") {
		return simBatches
	}
	return simCtl
}

const simInbox = "_r "

var errSimCut = errors.New("sim: not connected")

// publish hands a message to the driver.
func (l *simLife) publish(subject, reply string, data []byte) error {
	if err := l.hold(); err != nil {
		return err
	}
	m := simMsg{l, subject, reply, bytes.Clone(data)}
	if subject == subjBeat {
		m.data = nil // what it says is asked for when nothing moves
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.cut[simConn(subject)].out {
		return errSimCut
	}
	l.w.out = append(l.w.out, m)
	l.w.poke()
	return nil
}

// subscribe waits until the life is connected, as a flush would.
func (l *simLife) subscribe(s *simSub) error {
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if err := l.hold(); err != nil {
			return err
		}
		l.w.mu.Lock()
		ok := l.cut[simConn(s.subject)] == (simCut{})
		if ok {
			l.subs = append(l.subs, s)
		}
		l.w.mu.Unlock()
		if ok {
			return nil
		}
		if time.Now().After(end) {
			return errSimCut
		}
	}
}

// simData is the bus that carriers use.
type simData struct{ l *simLife }

func (b simData) Publish(subject string, data []byte) error { return b.l.publish(subject, "", data) }
func (b simData) MaxPayload() int                           { return 1 << 20 }
func (b simData) Reconnected() <-chan struct{} {
	b.l.w.mu.Lock()
	defer b.l.w.mu.Unlock()
	return b.l.up
}

func (b simData) Subscribe(subject string, depth int) (natsbus.Sub, error) {
	s := &simSub{l: b.l, subject: subject, c: make(chan *nats.Msg, depth)}
	return s, b.l.subscribe(s)
}

func (s *simSub) C() <-chan *nats.Msg { return s.c }
func (s *simSub) Close() error {
	s.l.w.mu.Lock()
	defer s.l.w.mu.Unlock()
	for i, x := range s.l.subs {
		if x == s {
			s.l.subs = append(append([]*simSub(nil), s.l.subs[:i]...), s.l.subs[i+1:]...)
			break
		}
	}
	return nil
}

// connected says whether the control plane's connection stands.
func (l *simLife) connected() bool {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return l.cut[simCtl] == (simCut{})
}

// simControl is the bus of the control plane.
type simControl struct{ l *simLife }

func (c simControl) Publish(subject string, data []byte) error { return c.l.publish(subject, "", data) }

func (c simControl) PublishMessage(m Message) error { return c.Publish(m.Subject, m.Data) }
func (c simControl) MaxPayload() int                { return 1 << 20 }
func (c simControl) Connected() bool                { return c.l.connected() }
func (c simControl) Flush(time.Duration) error      { return nil }
func (c simControl) Close()                         {}

func (c simControl) Subscribe(subject, queue string, h func(*request)) error {
	s := &simSub{l: c.l, subject: subject, queue: queue, q: make(chan *request, 1<<12)}
	go func() { // one message after the other, as a subscription of NATS
		for {
			select {
			case <-c.l.dead:
				return
			case r := <-s.q:
				h(r)
			}
		}
	}()
	return c.l.subscribe(s)
}

func (c simControl) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	l := c.l
	ch := make(chan []byte, 1)
	key := fmt.Sprintf("%s %x", subject, clock.HashString(0, string(data)))
	l.w.mu.Lock()
	l.asks[key]++
	key = fmt.Sprintf("%s %d", key, l.asks[key])
	l.inbox[key] = ch
	l.w.mu.Unlock()
	defer func() {
		l.w.mu.Lock()
		delete(l.inbox, key)
		l.w.mu.Unlock()
	}()
	if err := l.publish(subject, simInbox+l.id+" "+key, data); err != nil {
		return nil, err
	}
	select {
	case b := <-ch:
		return b, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.dead:
		return nil, errSimDead
	}
}

// route decides what becomes of published messages.
func (w *simWorld) route(out []simMsg) {
	beats := map[*simLife]bool{}
	sort.SliceStable(out, func(i, j int) bool { return out[i].before(&out[j]) })
	for i := range out {
		m := &out[i]
		if m.subject == subjBeat {
			if beats[m.from] {
				continue
			}
			beats[m.from] = true
			m.data, _ = json.Marshal(m.from.node.heartbeat())
		}
		what := w.describe(m)
		w.trace.add(w.now(), what)
		if id, ok := strings.CutPrefix(m.subject, simInbox); ok {
			w.answer(m, id, what)
			continue
		}
		for _, s := range w.receivers(m.subject) {
			w.carry(m, s, what)
		}
	}
}

// receivers lists who gets a message: everybody subscribed, of a queue one.
func (w *simWorld) receivers(subject string) (to []*simSub) {
	var queue []*simSub
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.procs {
		if p.life == nil {
			continue
		}
		for _, s := range p.life.subs {
			switch {
			case s.subject != subject:
			case s.queue != "":
				queue = append(queue, s)
			default:
				to = append(to, s)
			}
		}
	}
	if len(queue) > 0 {
		to = append(to, queue[w.rng.IntN(len(queue))])
	}
	return to
}

// carry sends one message to one subscriber: lost, once or twice, after a delay
// of its own, so that messages overtake one another.
func (w *simWorld) carry(m *simMsg, s *simSub, what string) {
	for _, d := range w.fates() {
		w.send(s.l, d, "-> "+s.l.id+" "+what, func() { w.deliver(m, s) })
	}
}

func (w *simWorld) fates() (d []time.Duration) {
	n := 1
	switch {
	case w.chance(w.net.loss):
		w.trace.add(w.now(), "lost")
		return nil
	case w.chance(w.net.dup):
		n = 2
	}
	for range n {
		d = append(d, w.draw(w.net.lo, w.net.hi))
	}
	return d
}

func (w *simWorld) deliver(m *simMsg, s *simSub) {
	w.mu.Lock()
	on := false
	for _, x := range s.l.subs {
		on = on || x == s
	}
	cut := s.l.cut[simConn(s.subject)].in
	w.mu.Unlock()
	if !on || cut {
		w.trace.add(w.now(), "not taken")
		return
	}
	if s.c != nil {
		select {
		case s.c <- &nats.Msg{Subject: m.subject, Data: m.data}:
		default:
			w.trace.add(w.now(), "overrun")
		}
		return
	}
	r := &request{Reply: m.reply, Data: m.data}
	if m.reply != "" {
		r.Answer = func(b []byte) { _ = s.l.publish(m.reply, "", b) }
	}
	s.q <- r
}

// answer carries a reply to whoever asked.
func (w *simWorld) answer(m *simMsg, id, what string) {
	who, key, _ := strings.Cut(id, " ")
	for _, p := range w.procs {
		l := p.life
		if l == nil || l.id != who {
			continue
		}
		for _, d := range w.fates() {
			w.send(l, d, "-> "+what, func() {
				w.mu.Lock()
				ch := l.inbox[key]
				if l.cut[simCtl].in {
					ch = nil
				}
				w.mu.Unlock()
				if ch == nil {
					return
				}
				select {
				case ch <- m.data:
				default:
				}
			})
		}
	}
}

// describe is the trace's line of a message; batches are compared with what
// was sent before (I3).
func (w *simWorld) describe(m *simMsg) string {
	if simConn(m.subject) == simBatches {
		p, run, err := w.peek(m)
		if err != nil {
			w.violate("%s sends %v", m.from.id, err)
			return ""
		}
		if p.Kind == "batch" {
			k, sum := simBatch{run, p.Src, p.Dst, p.N}, clock.HashString(0, string(p.Body))
			if old, ok := w.batches[k]; ok && old != sum {
				w.violate("I3: two contents of %v, now from %s", p, m.from.id)
			}
			w.batches[k] = sum
		}
		return m.from.id + " " + p.String()
	}
	return fmt.Sprintf("%s %s %s %x", m.from.id, m.subject, m.reply, clock.HashString(0, string(m.data)))
}

// peek reads a message of one of the runs.
func (w *simWorld) peek(m *simMsg) (p natsbus.Peeked, run string, err error) {
	for _, run = range w.saves.runs {
		if p, err = natsbus.Peek(m.data, m.from.node.key(run, w.plan.hash), maxSimSlots); err == nil {
			break
		}
	}
	return p, run, err
}

// cutOff disconnects a process, by connection and direction, and back.
func (w *simWorld) cutOff(l *simLife, c [2]simCut) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.cut = c
	if c == ([2]simCut{}) {
		close(l.up)
		l.up = make(chan struct{})
	}
}
