package gnmi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/rocemu/rocemu/clock"
)

// Methods that collectors listen on for dial-out (switch.md §7.3): SONiC's, and
// the one that gnmic listen and telegraf's gnmi_listener speak.
const (
	MethodSONiC = "/gnmi.sonic.gNMIDialOut/Publish"
	MethodNokia = "/Nokia.SROS.DialoutTelemetry/Publish"
)

// DialOut describes a subscription that a switch publishes by itself.
type DialOut struct {
	Destinations []string // HOST:PORT; the next one is tried when one fails
	Method       string   // default MethodNokia
	Name         string   // subscription-name
	Target       string   // e.g. COUNTERS_DB
	Paths        []*pb.Path
	Encoding     pb.Encoding
	OnChange     bool
	Every        clock.Duration // virtual; 0 = each sample
	Retry        time.Duration  // real; default 30 s, as SONiC's retry_interval
}

// Publisher runs a dial-out for one switch.
type Publisher struct {
	cfg    DialOut
	store  *Store
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	sent uint64 // messages
	got  uint64 // samples that a listener's connection took
	last *View  // the latest of them
	err  error
}

// Account is what became of the samples that a dial-out was to publish. One that
// a listener's connection took may still have been lost with that connection.
type Account struct {
	Made      uint64
	Exported  uint64
	LastError string // why the last connection failed, "" = it did not
}

// Publish starts a dial-out from s. It reconnects until Close, or until s ends.
func Publish(s *Store, cfg DialOut) (*Publisher, error) {
	if len(cfg.Destinations) == 0 || len(cfg.Paths) == 0 {
		return nil, fmt.Errorf("dial-out %s: want destinations and paths", cfg.Name)
	}
	if cfg.Method == "" {
		cfg.Method = MethodNokia
	}
	if cfg.Retry <= 0 {
		cfg.Retry = 30 * time.Second
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Publisher{cfg: cfg, store: s, cancel: cancel, done: make(chan struct{})}
	go p.run(ctx)
	return p, nil
}

// Close ends the store and the dial-out, once a collector has the last sample;
// it waits for two seconds at most.
func (p *Publisher) Close() {
	p.store.End()
	t := time.AfterFunc(lastWords, p.cancel)
	<-p.done
	t.Stop()
	p.cancel()
}

// Sent returns the messages sent and the last error.
func (p *Publisher) Sent() (uint64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent, p.err
}

// Account tells what became of the samples so far.
func (p *Publisher) Account() Account {
	p.store.mu.Lock()
	a := Account{Made: p.store.taken}
	p.store.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	a.Exported = p.got
	if p.err != nil {
		a.LastError = p.err.Error()
	}
	return a
}

// run goes round the destinations; after each full round that failed it waits.
func (p *Publisher) run(ctx context.Context) {
	defer close(p.done)
	for ctx.Err() == nil {
		last := p.store.over()
		for _, d := range p.cfg.Destinations {
			err := p.connect(ctx, d)
			p.failed(ctx, d, err)
			if err == nil || ctx.Err() != nil {
				return
			}
		}
		if last {
			return
		}
		select {
		case <-time.After(p.cfg.Retry):
		case <-p.store.ended:
		case <-ctx.Done():
		}
	}
}

// failed notes how a connection ended. One that the end of the run cut short
// says less than the one before.
func (p *Publisher) failed(ctx context.Context, addr string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case ctx.Err() == nil || err == nil:
		p.err = err
	case p.err == nil:
		p.err = fmt.Errorf("%s had not answered when the run ended", addr)
	}
}

// connect publishes to one collector until it fails; nil when it has all.
func (p *Publisher) connect(ctx context.Context, addr string) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx = metadata.AppendToOutgoingContext(ctx, "subscription-name", p.cfg.Name, "system-name", p.store.Device)
	cs, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, p.cfg.Method)
	if err != nil {
		return err
	}
	go p.drain(cs, end)
	return p.feed(ctx, cs)
}

// drain reads and ignores replies: collectors answer every message, each with
// a type of its own, and an unread reply would stall the stream. What ends the
// stream is the cause of its end.
func (p *Publisher) drain(cs grpc.ClientStream, end context.CancelCauseFunc) {
	for {
		if err := cs.RecvMsg(new(emptypb.Empty)); err != nil {
			end(err)
			return
		}
	}
}

// dialStream lets a dial-out reuse the stream of a subscription: both send
// SubscribeResponse messages.
type dialStream struct {
	pb.GNMI_SubscribeServer
	cs grpc.ClientStream
	p  *Publisher
}

func (d dialStream) Send(r *pb.SubscribeResponse) error {
	if err := d.cs.SendMsg(r); err != nil {
		return err
	}
	d.p.mu.Lock()
	d.p.sent++
	d.p.mu.Unlock()
	return nil
}

// feed sends samples as they come.
func (p *Publisher) feed(ctx context.Context, cs grpc.ClientStream) error {
	list := &pb.SubscriptionList{Encoding: p.cfg.Encoding, Prefix: &pb.Path{Target: p.cfg.Target}}
	for _, path := range p.cfg.Paths {
		sub := &pb.Subscription{Path: path, Mode: pb.SubscriptionMode_SAMPLE, SampleInterval: uint64(p.cfg.Every / clock.Nanosecond)}
		if p.cfg.OnChange {
			sub.Mode = pb.SubscriptionMode_ON_CHANGE
		}
		list.Subscription = append(list.Subscription, sub)
	}
	st := &stream{srv: dialStream{cs: cs, p: p}, list: list}
	if err := st.resolve(); err != nil {
		return err
	}
	m := p.store.attach()
	defer p.store.detach(m)
	for {
		v, gaps, err := m.next(ctx, p.store)
		if err != nil {
			return context.Cause(ctx)
		}
		if v == nil {
			cs.CloseSend() //nolint:errcheck // a broken stream shows on its other side
			<-ctx.Done()
			return farewell(context.Cause(ctx))
		}
		if err := st.sample(v, gaps); err != nil {
			return err
		}
		p.took(v)
	}
}

// took counts a sample; the latest one is sent again after a reconnection.
func (p *Publisher) took(v *View) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v != p.last {
		p.last = v
		p.got++
	}
}

// farewell is how a collector answered the end of a stream: whatever it says of
// its own, it has read to there.
func farewell(err error) error {
	if status.Code(err) == codes.Unknown && !errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
