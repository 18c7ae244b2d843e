package coord

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rocemu/rocemu/actors/natsbus"
)

// control is the bus of the control plane as a node sees it: at most once, in
// no order to rely on. NATS is one; the simulated cluster has another.
type control interface {
	// Publish does not keep data after it returns.
	Publish(subject string, data []byte) error
	PublishMessage(m Message) error
	// Subscribe calls h for one message after the other. Of the subscribers with
	// the same queue name one gets each message; "" = all do.
	Subscribe(subject, queue string, h func(*request)) error
	// Request publishes and waits for the first answer.
	Request(ctx context.Context, subject string, data []byte) ([]byte, error)
	MaxPayload() int
	Connected() bool
	Flush(limit time.Duration) error
	Close()
}

// request is a message that came; Answer sends to whoever asked.
type request struct {
	Reply  string
	Data   []byte
	Answer func(data []byte)
}

// voter is one copy of the ledger that takes part in its consensus.
type voter interface {
	// propose commits one entry on the leader. After an error it may be in the
	// ledger or not; errHung means that this leader cannot write any more.
	propose(b []byte, wait time.Duration) (Result, error)
	// barrier waits until this copy has every entry committed before the call;
	// an error when this voter does not lead.
	barrier(wait time.Duration) error
	leads() bool
	leader() string
	heardOf() time.Duration // how long ago there was a leader that this voter knew; 0 = there is
	told() string           // address that others reach it at
	bootstrapped() bool
	bootstrap(voters map[string]string) error
	addVoter(name, addr string) error
	heard(name, addr string) // what a coordinator says of itself, addr "" = nothing
	voters() map[string]string
	close()
	kill() // the way a lost process ends
}

// natsControl is the control plane over a NATS connection.
type natsControl struct{ *natsbus.Conn }

// Connected implements control.
func (c natsControl) Connected() bool { return c.NATS().Status() == nats.CONNECTED }

func (c natsControl) PublishMessage(m Message) error {
	x := nats.NewMsg(m.Subject)
	x.Data = m.Data
	for k, v := range m.Header {
		x.Header.Set(k, v)
	}
	return c.NATS().PublishMsg(x)
}

func (c natsControl) Subscribe(subject, queue string, h func(*request)) error {
	take := func(m *nats.Msg) {
		h(&request{Reply: m.Reply, Data: m.Data, Answer: func(b []byte) { _ = m.Respond(b) }})
	}
	var err error
	if queue == "" {
		_, err = c.NATS().Subscribe(subject, take)
	} else {
		_, err = c.NATS().QueueSubscribe(subject, queue, take)
	}
	return err
}

func (c natsControl) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	m, err := c.NATS().RequestWithContext(ctx, subject, data)
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

func (c natsControl) Flush(limit time.Duration) error { return c.NATS().FlushTimeout(limit) }

// listen subscribes to the control plane.
func (n *Node) listen() error {
	var errs []error
	sub := func(subject, queue string, h func(*request)) {
		errs = append(errs, n.ctl.Subscribe(subject, queue, h))
	}
	if n.cons == nil {
		sub(subjLedger, "", n.feedIn)
	} else {
		sub(subjBeat, "", n.lead.onBeat)
		sub(subjReport, "", n.lead.onReport)
		sub(subjLead, "", n.onLead)
		sub(subjStand, "", n.onStand)
		sub(subjPiece, "", n.onPiece)
		sub(subjSync, queueAny, n.onSync)
	}
	sub(subjLook, "", n.onLook)
	sub(subjBlob, "", n.onPeerBlob)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return n.ctl.Flush(5 * time.Second)
}
