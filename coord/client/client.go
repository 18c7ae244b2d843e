// Package client talks to a cluster's coordinators: every verb of emuctl that
// concerns a running fabric is one method. Commands are idempotent (each has an
// id and may be sent again) and every call ends by its context's deadline.
package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/rocemu/rocemu/actors/natsbus"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
)

// ErrUnreachable: no coordinator answered in time.
var ErrUnreachable = errors.New("the cluster cannot be reached")

// ErrOver: the cluster belonged to a process, which has ended.
var ErrOver = errors.New("the run has ended, and with it the emuctl run that it belonged to")

// Client is a connection to a cluster.
type Client struct {
	pid  int // of the process that the cluster belongs to; 0 = it stands for itself
	conn *natsbus.Conn
	own  bool
	// seen is the largest ledger number of an answer: no later answer may know less.
	seen atomic.Uint64
	// lags is since when coordinators have known less, Unix ns; 0 = they do not.
	lags atomic.Int64
}

// Dial connects.
func Dial(d natsbus.Dialer) (*Client, error) {
	c, err := d.Dial()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return &Client{conn: c, own: true}, nil
}

// BelongTo says that the cluster lives as long as a process of this machine:
// once that has ended nobody waits for an answer.
func (c *Client) BelongTo(pid int) { c.pid = pid }

func (c *Client) over() bool { return c.pid != 0 && !running(c.pid) }

// Close ends the connection.
func (c *Client) Close() {
	if c.own {
		c.conn.Close()
	}
}

// NewID makes a command or run id.
func NewID() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// A coordinator that hangs costs one try; resolving a large fabric takes time.
const (
	shortTry = time.Second
	longTry  = 20 * time.Second
)

// request sends one request until a coordinator answers or ctx ends.
func (c *Client) request(ctx context.Context, verb string, data []byte) ([]byte, error) {
	try := shortTry
	if verb == "submit" {
		try = longTry
	}
	return c.keepAsking(ctx, verb, data, try)
}

func (c *Client) keepAsking(ctx context.Context, verb string, data []byte, try time.Duration) ([]byte, error) {
	var why error // the last answer that was one, but for a coordinator that hung
	for {
		b, err := c.ask(ctx, verb, data, try)
		if why == nil || !errors.Is(err, context.DeadlineExceeded) {
			why = err
		}
		var refused refusal
		switch {
		case err == nil:
			return b, nil
		case errors.As(err, &refused):
			return nil, err
		}
		if c.over() {
			return nil, fmt.Errorf("%s: %w", verb, ErrOver)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %s: %w", ErrUnreachable, verb, why)
		case <-time.After(100 * time.Millisecond):
		}
		if errors.Is(err, nats.ErrConnectionClosed) {
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
	}
}

// forget is how long coordinators may know less than they once did before the
// client takes it that their ledger was wiped.
const forget = 5 * time.Second

var errLags = errors.New("the coordinators cannot tell yet")

// refusal is an answer that says no.
type refusal string

func (r refusal) Error() string { return string(r) }

// ask sends one request once.
func (c *Client) ask(ctx context.Context, verb string, data []byte, try time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, try)
	defer cancel()
	q := nats.NewMsg("emu.ctl." + verb)
	q.Data = data
	if n := c.seen.Load(); n > 0 {
		q.Header.Set(coord.HeaderSeq, strconv.FormatUint(n, 10))
	}
	m, err := c.conn.NATS().RequestMsgWithContext(ctx, q)
	if err != nil {
		return nil, err
	}
	e := m.Header.Get(micro.ErrorHeader)
	if e != "" && m.Header.Get(micro.ErrorCodeHeader) == coord.CodeLags {
		c.behind()
		return nil, fmt.Errorf("%w: %s", errLags, e)
	}
	c.lags.Store(0)
	if n, err := strconv.ParseUint(m.Header.Get(coord.HeaderSeq), 10, 64); err == nil {
		c.saw(n)
	}
	if e != "" {
		return nil, refusal(e)
	}
	return m.Data, nil
}

// behind notes that a coordinator knows less than one has told before. When
// that is all that comes for long, over however many calls, the ledger itself
// has begun anew.
func (c *Client) behind() {
	now := time.Now().UnixNano()
	if c.lags.CompareAndSwap(0, now) {
		return
	}
	if time.Duration(now-c.lags.Load()) > forget {
		c.seen.Store(0)
	}
}

// saw notes how far an answer knew the ledger.
func (c *Client) saw(seq uint64) {
	for {
		old := c.seen.Load()
		if seq <= old || c.seen.CompareAndSwap(old, seq) {
			return
		}
	}
}

// Do commits one entry as it is; sending it again with the same Cmd is harmless
// and gives the same answer.
func (c *Client) Do(ctx context.Context, verb string, e *coord.Entry) (coord.Result, error) {
	return c.command(ctx, verb, e)
}

// command commits one entry. A refusal is an error with its reason.
func (c *Client) command(ctx context.Context, verb string, e *coord.Entry) (coord.Result, error) {
	if e.Cmd == "" {
		e.Cmd = NewID()
	}
	b, err := e.Encode()
	if err != nil {
		return coord.Result{}, err
	}
	if n := int(c.conn.NATS().MaxPayload()); len(b) > n-4096 { // room for headers
		if e.Kind != coord.KindSubmit {
			return coord.Result{}, fmt.Errorf("the command has %d bytes, the bus carries %d", len(b), n)
		}
		return c.upload(ctx, b)
	}
	noQuorum := fmt.Errorf("%w: no quorum: the coordinators have no leader", ErrUnreachable)
	leaderless := false
	for {
		b, err := c.request(ctx, verb, b)
		if errors.Is(err, ErrUnreachable) && leaderless {
			return coord.Result{}, noQuorum
		}
		if err != nil {
			return coord.Result{}, err
		}
		var r coord.Result
		if err := json.Unmarshal(b, &r); err != nil {
			return r, err
		}
		if r.Err == "" {
			c.saw(r.Seq)
			return r, nil
		}
		if r.Err != coord.NoLeader {
			return r, errors.New(r.Err)
		}
		leaderless = true
		select {
		case <-ctx.Done():
			return r, noQuorum
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Submit starts a run and returns its id.
func (c *Client) Submit(ctx context.Context, s coord.RunSpec) (string, error) {
	if s.ID == "" {
		s.ID = NewID()
	}
	if s.Epoch == 0 {
		s.Epoch = time.Now().UnixNano()
	}
	_, err := c.command(ctx, "submit", &coord.Entry{Cmd: "submit-" + s.ID, Kind: coord.KindSubmit, Spec: &s})
	return s.ID, err
}

// Pause stops granting; it returns the instant up to which time may still run.
func (c *Client) Pause(ctx context.Context) (clock.Time, error) {
	r, err := c.command(ctx, "pause", &coord.Entry{Kind: coord.KindPause})
	return r.At, err
}

// Resume lets a paused run go on.
func (c *Client) Resume(ctx context.Context) error {
	_, err := c.command(ctx, "resume", &coord.Entry{Kind: coord.KindResume})
	return err
}

// Step lets virtual time advance by d and pauses; it returns where.
func (c *Client) Step(ctx context.Context, d clock.Duration) (clock.Time, error) {
	r, err := c.command(ctx, "step", &coord.Entry{Kind: coord.KindStep, At: clock.Time(d)})
	return r.At, err
}

// Pace ties virtual to wall time; zero frees it.
func (c *Client) Pace(ctx context.Context, p coord.Pace) error {
	_, err := c.command(ctx, "pace", &coord.Entry{Kind: coord.KindPace, Pace: &p})
	return err
}

// Stop ends the run at an instant, or as soon as can be when at is 0.
func (c *Client) Stop(ctx context.Context, at clock.Time) (clock.Time, error) {
	r, err := c.command(ctx, "stop", &coord.Entry{Kind: coord.KindStop, At: at})
	return r.At, err
}

// Move has a slot go to another process at the next checkpoint; it returns that
// checkpoint's boundary.
func (c *Client) Move(ctx context.Context, slot int, to string) (clock.Time, error) {
	r, err := c.command(ctx, "move", &coord.Entry{Kind: coord.KindWish, Slot: slot, To: to})
	return r.At, err
}

// Cancel ends the run without a result.
func (c *Client) Cancel(ctx context.Context, why string) error {
	_, err := c.command(ctx, "cancel", &coord.Entry{Kind: coord.KindFail, Why: why})
	return err
}

// Fault injects a fault, a change or the end of one, and others that take effect
// together with it, when it wants to; it returns their instant.
func (c *Client) Fault(ctx context.Context, f coord.Fault, with ...coord.Fault) (clock.Time, error) {
	r, err := c.command(ctx, "fault", &coord.Entry{Kind: coord.KindFault, Fault: &f, With: with})
	return r.At, err
}

// Save asks for a snapshot under e.Name, at e.At or as soon as can be, with e.Firm
// not later, with e.New over no other; it returns the run, the boundary and whose
// place it takes, and does not wait until it is stored.
func (c *Client) Save(ctx context.Context, e coord.Entry) (coord.Result, error) {
	e.Kind = coord.KindCkptPlan
	return c.command(ctx, "save", &e)
}

// Snapshots lists what was saved.
func (c *Client) Snapshots(ctx context.Context) (l []coord.Snapshot, err error) {
	b, err := c.request(ctx, "snapshots", nil)
	if err == nil {
		err = json.Unmarshal(b, &l)
	}
	return l, err
}

// Status asks any coordinator.
func (c *Client) Status(ctx context.Context) (*coord.Status, error) {
	b, err := c.request(ctx, "status", nil)
	if err != nil {
		return nil, err
	}
	s := new(coord.Status)
	return s, json.Unmarshal(b, s)
}

// whole collects an answer that comes in pieces.
func (c *Client) whole(ctx context.Context, verb string, ask func(off int) any) ([]byte, error) {
	var out []byte
	var sum string
	for {
		q, err := json.Marshal(ask(len(out)))
		if err != nil {
			return nil, err
		}
		b, err := c.request(ctx, verb, q)
		if err != nil {
			return nil, err
		}
		var a struct {
			Offset, Total int
			Piece         []byte
			Sum           string
		}
		if err := json.Unmarshal(b, &a); err != nil {
			return nil, err
		}
		if a.Offset != len(out) || a.Total > 1<<31 || len(a.Piece) == 0 && len(out) < a.Total {
			return nil, fmt.Errorf("%s: a piece at %d of %d does not fit", verb, a.Offset, a.Total)
		}
		if len(out) > 0 && a.Sum != sum { // it changed meanwhile
			out = nil
			continue
		}
		sum = a.Sum
		out = append(out, a.Piece...)
		if len(out) >= a.Total {
			return out, nil
		}
	}
}

// Run fetches a run's record from the ledger; id "" is the current run.
func (c *Client) Run(ctx context.Context, id string) (*coord.Run, error) {
	b, err := c.whole(ctx, "run", func(off int) any { return map[string]any{"id": id, "offset": off} })
	if err != nil {
		return nil, err
	}
	r := new(coord.Run)
	return r, json.Unmarshal(b, r)
}

// Blob fetches a blob and checks it.
func (c *Client) Blob(ctx context.Context, sum string) ([]byte, error) {
	b, err := c.whole(ctx, "blob", func(off int) any { return map[string]any{"sum": sum, "offset": off} })
	if err != nil {
		return nil, err
	}
	if coord.SumOf(b) != sum {
		return nil, fmt.Errorf("blob %.12s arrived damaged", sum)
	}
	return b, nil
}

// Wait returns the run's record once it is over, calling tick with the status
// meanwhile. Losing the cluster for a while is not an error; ctx is the limit.
func (c *Client) Wait(ctx context.Context, id string, tick func(*coord.Status)) (*coord.Run, error) {
	return c.WaitOr(ctx, id, nil, tick)
}

// WaitOr is Wait for who may hear of the end from elsewhere too.
func (c *Client) WaitOr(ctx context.Context, id string, ended <-chan struct{}, tick func(*coord.Status)) (*coord.Run, error) {
	for {
		sctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		s, err := c.Status(sctx)
		cancel()
		if err == nil {
			if tick != nil {
				tick(s)
			}
			if over(s, id) {
				r, err := c.Run(ctx, id)
				if err != nil || r.Phase == coord.Ended || r.Phase == coord.Failed {
					return r, err
				} // a coordinator that was stopped for a while and lags has answered
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ended:
			ended = nil
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func over(s *coord.Status, id string) bool {
	if s.Run != nil && s.Run.ID == id {
		return s.Run.Phase == coord.Ended || s.Run.Phase == coord.Failed
	}
	for _, p := range s.Past {
		if p.ID == id {
			return true
		}
	}
	return false
}
