package coord

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
)

// subjLook is where a question about a running fabric goes; every process that
// runs a slot of the run answers for it, in pieces, to the reply subject.
const subjLook = ctlPrefix + "look"

// Look asks every slot of a run something between two windows.
type Look struct {
	Run  string          `json:"run"`
	What string          `json:"what"`
	Arg  json.RawMessage `json:"arg,omitempty"`
	// N is the window before which to look; a slot that has passed it, or that
	// cannot come to it soon, answers where it is.
	N uint64 `json:"n,omitempty"`
	// Args, by slot, replace Arg.
	Args []json.RawMessage `json:"args,omitempty"`
}

// Seen is a piece of one slot's answer.
type Seen struct {
	Run    string     `json:"run"`
	Slot   int        `json:"slot"`
	Inc    uint64     `json:"inc"`
	Slots  int        `json:"slots"`
	N      uint64     `json:"n"`  // the window that comes next
	At     clock.Time `json:"at"` // its start
	Piece  int        `json:"piece"`
	Pieces int        `json:"pieces"`
	Body   []byte     `json:"body,omitempty"`
	Err    string     `json:"err,omitempty"`
	Notes  []string   `json:"notes,omitempty"` // blobs of what was noted before, on the first piece
}

const (
	maxLooks  = 16                     // that wait in one slot
	lookPiece = 512 << 10              // bytes of body in a message
	lookWait  = 250 * time.Millisecond // for a window to come
)

// look is a question on its way through a slot.
type look struct {
	Look
	until time.Time
	send  func(*Seen)
}

// onLook hands a question to the slots of this process.
func (n *Node) onLook(m *request) {
	var q Look
	if m.Reply == "" || json.Unmarshal(m.Data, &q) != nil {
		return
	}
	send := func(s *Seen) { n.sendSeen(m.Reply, s) }
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.runs {
		if r.run != q.Run {
			continue
		}
		l := &look{Look: q, until: time.Now().Add(lookWait), send: send}
		if r.slot < len(q.Args) {
			l.Arg = q.Args[r.slot]
		}
		select {
		case r.looks <- l:
		default:
			go send(&Seen{Run: r.run, Slot: r.slot, Inc: r.inc, Slots: r.slots, Pieces: 1, Err: "too many questions wait"})
		}
	}
}

// sendSeen publishes an answer in pieces.
func (n *Node) sendSeen(to string, s *Seen) {
	body := s.Body
	s.Pieces = max(1, (len(body)+lookPiece-1)/lookPiece)
	for s.Piece = range s.Pieces {
		s.Body = body[s.Piece*lookPiece : min(len(body), (s.Piece+1)*lookPiece)]
		b, err := json.Marshal(s)
		if err == nil {
			err = n.ctl.Publish(to, b)
		}
		if err != nil {
			n.log.Debug("look", "err", err)
			return
		}
		s.Notes = nil
	}
}

// lookAt answers what was asked; it runs between windows.
func (r *runner) lookAt(start clock.Time, n uint64) {
	if len(r.later) > 0 {
		rest := r.later[:0]
		for _, l := range r.later {
			if l.N > n && time.Now().Before(l.until) {
				rest = append(rest, l)
				continue
			}
			r.tell(l, start, n)
		}
		r.later = rest
	}
	for len(r.looks) > 0 {
		l := <-r.looks
		if l.N > n {
			r.later = append(r.later, l)
			continue
		}
		r.tell(l, start, n)
	}
}

// answer is lookAt for an engine that waits for a grant; l may be nil.
func (r *runner) answer(e *actors.Engine, l *look, start clock.Time) {
	n := e.Windows()
	r.tally(e)
	if l != nil && l.N <= n {
		r.tell(l, start, n)
	} else if l != nil {
		r.later = append(r.later, l)
	}
	r.lookAt(start, n)
}

// tell looks and answers. Sending happens elsewhere: a slow connection holds
// nobody up.
func (r *runner) tell(l *look, start clock.Time, n uint64) {
	s := &Seen{Run: r.run, Slot: r.slot, Inc: r.inc, Slots: r.slots, N: n, At: start}
	f, ok := r.fab.(Looker)
	if !ok {
		s.Err = "this fabric cannot be looked at"
	} else if b, err := f.Look(l.What, l.Arg, start, n); err != nil {
		s.Err = err.Error()
	} else {
		s.Body = b
	}
	go func() {
		s.Notes = r.notes.stored()
		l.send(s)
	}()
}

// linger answers questions after the end, until the slot is taken back.
func (r *runner) linger(ctx context.Context, e *actors.Engine, at clock.Time) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case l := <-r.looks:
			r.tell(l, at, e.Windows())
		}
	}
}

// say publishes what a fabric has to say.
func (n *Node) say(m Message) {
	if err := n.ctl.PublishMessage(m); err != nil {
		n.log.Debug("publish", "subject", m.Subject, "err", err)
	}
}
