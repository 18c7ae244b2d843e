package natsbus

import (
	"crypto/tls"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Dialer says how to reach NATS.
type Dialer struct {
	URL  string
	Name string
	Seed string // file with an NKey seed; "" = none
	TLS  *tls.Config
	// Wait is how long the first connection may take; after it the connection
	// comes back for ever.
	Wait time.Duration
	// Note, when set, is told of disconnects, reconnects and slow consumers.
	Note func(what string, err error)
}

// Conn is a NATS connection as a [Bus].
type Conn struct {
	nc *nats.Conn
	mu sync.Mutex
	up chan struct{}
}

// Dial connects. Publishing fails at once while the connection is down
// (nothing is buffered to be flushed later): whoever needs the message asks.
func (d Dialer) Dial() (*Conn, error) {
	c := &Conn{up: make(chan struct{})}
	note := d.Note
	if note == nil {
		note = func(string, error) {}
	}
	opts := []nats.Option{
		nats.Name(d.Name), nats.MaxReconnects(-1), nats.ReconnectWait(50 * time.Millisecond), nats.ReconnectJitter(0, 50*time.Millisecond),
		nats.ReconnectBufSize(-1), nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(pingsOut), nats.Timeout(2 * time.Second),
		nats.FlusherTimeout(10 * time.Second),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { note("disconnected", err) }),
		nats.ReconnectHandler(func(*nats.Conn) { note("reconnected", nil); c.reconnected() }),
		nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) {
			if s != nil {
				err = fmt.Errorf("%s: %w", s.Subject, err)
			}
			note("error", err)
		}),
	}
	if d.Seed != "" {
		o, err := nats.NkeyOptionFromSeed(d.Seed)
		if err != nil {
			return nil, fmt.Errorf("nats: key %s: %w", d.Seed, err)
		}
		opts = append(opts, o)
	}
	if d.TLS != nil {
		opts = append(opts, nats.Secure(d.TLS))
	}
	deadline := time.Now().Add(d.Wait)
	for {
		nc, err := nats.Connect(d.URL, opts...)
		if err == nil {
			c.nc = nc
			return c, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("nats: %s: %w", d.URL, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (c *Conn) reconnected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.up)
	c.up = make(chan struct{})
}

// NATS returns the connection itself.
func (c *Conn) NATS() *nats.Conn { return c.nc }

// Close ends it.
func (c *Conn) Close() { c.nc.Close() }

// Publish implements [Bus].
func (c *Conn) Publish(subject string, data []byte) error { return c.nc.Publish(subject, data) }

// MaxPayload implements [Bus].
func (c *Conn) MaxPayload() int { return int(c.nc.MaxPayload()) }

// Reconnected implements [Bus].
func (c *Conn) Reconnected() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.up
}

type natsSub struct {
	s *nats.Subscription
	c chan *nats.Msg
}

// Subscribe implements [Bus]: messages go straight from the connection's reader
// into the channel, with no goroutine between.
func (c *Conn) Subscribe(subject string, depth int) (Sub, error) {
	ch := make(chan *nats.Msg, depth)
	s, err := c.nc.ChanSubscribe(subject, ch)
	if err != nil {
		return nil, fmt.Errorf("nats: subscribe to %s: %w", subject, err)
	}
	if err := c.flush(subscribeWait); err != nil {
		_ = s.Unsubscribe()
		return nil, fmt.Errorf("nats: subscribe to %s: %w", subject, err)
	}
	return &natsSub{s, ch}, nil
}

// subscribeWait is how long a subscription may take to reach a server.
const subscribeWait = time.Minute

// flush returns once a server has seen what was sent. A connection that breaks
// meanwhile (which nats.go calls closed here) takes its subscriptions with it
// when it comes back.
func (c *Conn) flush(limit time.Duration) error {
	for end := time.Now().Add(limit); ; {
		err := c.nc.FlushTimeout(2 * time.Second)
		if err == nil || c.nc.IsClosed() || time.Now().After(end) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *natsSub) C() <-chan *nats.Msg { return s.c }
func (s *natsSub) Close() error        { return s.s.Unsubscribe() }
