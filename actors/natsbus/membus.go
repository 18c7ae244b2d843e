package natsbus

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// MemNet is a bus in memory that misbehaves on purpose, from a seed. For tests
// and the simulated cluster.
type MemNet struct {
	Loss, Dup, Reorder float64       // probability of each message
	Delay              time.Duration // of reordered messages, at most

	mu   sync.Mutex
	rng  *rand.Rand
	subs map[string][]*memSub
	cut  map[string]bool // subjects that deliver nothing
	up   chan struct{}

	// Counters of what was done to messages.
	Lost, Duplicated, Delayed, Overrun uint64
}

// NewMemNet makes a perfect bus; set its fields before use to spoil it.
func NewMemNet(seed uint64) *MemNet {
	return &MemNet{rng: rand.New(rand.NewPCG(seed, 0xB05)), subs: map[string][]*memSub{}, cut: map[string]bool{}, up: make(chan struct{})}
}

// Publish implements [Bus].
func (m *MemNet) Publish(subject string, data []byte) error {
	msg := &nats.Msg{Subject: subject, Data: append([]byte(nil), data...)}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cut[subject] || m.rng.Float64() < m.Loss {
		m.Lost++
		return nil
	}
	n := 1
	if m.rng.Float64() < m.Dup {
		m.Duplicated++
		n = 2
	}
	for range n {
		if m.rng.Float64() < m.Reorder && m.Delay > 0 {
			m.Delayed++
			time.AfterFunc(time.Duration(m.rng.Int64N(int64(m.Delay))), func() {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.deliver(msg)
			})
			continue
		}
		m.deliver(msg)
	}
	return nil
}

func (m *MemNet) deliver(msg *nats.Msg) {
	for _, s := range m.subs[msg.Subject] {
		select {
		case s.c <- msg:
		default:
			m.Overrun++
		}
	}
}

// Cut makes a subject deliver nothing, or heals it.
func (m *MemNet) Cut(subject string, cut bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut[subject] = cut
}

// Reconnect tells subscribers that the connection was renewed.
func (m *MemNet) Reconnect() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.up)
	m.up = make(chan struct{})
}

// Reconnected implements [Bus].
func (m *MemNet) Reconnected() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.up
}

// MaxPayload implements [Bus].
func (m *MemNet) MaxPayload() int { return 1 << 20 }

type memSub struct {
	net     *MemNet
	subject string
	c       chan *nats.Msg
}

// Subscribe implements [Bus].
func (m *MemNet) Subscribe(subject string, depth int) (Sub, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &memSub{net: m, subject: subject, c: make(chan *nats.Msg, depth)}
	m.subs[subject] = append(m.subs[subject], s)
	return s, nil
}

func (s *memSub) C() <-chan *nats.Msg { return s.c }

func (s *memSub) Close() error {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	l := s.net.subs[s.subject]
	for i := range l {
		if l[i] == s {
			s.net.subs[s.subject] = append(append([]*memSub(nil), l[:i]...), l[i+1:]...)
			break
		}
	}
	return nil
}
