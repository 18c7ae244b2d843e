package otlp

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/telemetry/chain"
)

// Options of an [Exporter]. Zero values take the defaults named.
type Options struct {
	Time        TimeMap
	SampleEvery int           // chains of one queue pair in this many are exported, default 1 = all
	MaxQueue    int           // spans that may wait, default 262144
	MaxBatch    int           // spans an export, whole chains, default 4096; it begins with 256
	Timeout     time.Duration // of one export, default 5 s
	Attempts    int           // for one batch before it is given up, default 8
	Backoff     time.Duration // after the first failure, doubling up to 30 s; default 250 ms
	Drain       time.Duration // how long Close waits for a collector that takes nothing, default 5 s
}

func (o *Options) defaults() {
	set := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	span := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&o.SampleEvery, 1)
	set(&o.MaxQueue, 1<<18)
	set(&o.MaxBatch, 4096)
	set(&o.Attempts, 8)
	span(&o.Timeout, 5*time.Second)
	span(&o.Backoff, 250*time.Millisecond)
	span(&o.Drain, 5*time.Second)
}

// maxBackoff bounds the wait of the circuit breaker, maxDrains what Close waits
// in all, in Options.Drain.
const (
	maxBackoff = 30 * time.Second
	maxDrains  = 6
)

// firstBatch is how many spans a collector gets that has not answered yet, or
// failed; with each batch that it takes it gets twice as many.
const firstBatch = 256

// Count is a number of chains and of their spans.
type Count struct {
	Chains uint64 `json:"chains"`
	Spans  uint64 `json:"spans"`
}

func (c *Count) add(chains, spans int) {
	c.Chains += uint64(chains)
	c.Spans += uint64(spans)
}

// Accounts say what became of the chains offered. After Close,
// Offered = Exported + the four ways of being dropped.
type Accounts struct {
	Offered   Count  `json:"offered"`
	Exported  Count  `json:"exported"`
	Sampled   Count  `json:"dropped_sampling"`   // queue pair not sampled
	Queue     Count  `json:"dropped_queue_full"` // queue full: collector too slow or away
	Failed    Count  `json:"dropped_failed"`     // given up after all attempts, or rejected
	Closed    Count  `json:"dropped_closed"`     // still waiting when the run's end had waited long enough
	Failures  uint64 `json:"failed_exports"`
	LastError string `json:"last_error,omitempty"`
}

// Dropped sums what was not exported.
func (a Accounts) Dropped() Count {
	var c Count
	for _, d := range []Count{a.Sampled, a.Queue, a.Failed, a.Closed} {
		c.add(int(d.Chains), int(d.Spans))
	}
	return c
}

// Exporter delivers chains to one destination from its own goroutine.
type Exporter struct {
	opt  Options
	dest otlptrace.Client
	pack *packer
	size int // spans that the next batch may have

	mu     sync.Mutex
	queue  []*chain.Chain
	waits  int // spans in queue and in the batch being exported
	acct   Accounts
	wake   chan struct{}
	closed chan struct{}
	done   chan struct{}
	once   sync.Once
	ctx    context.Context // ends when Close does not wait any longer
	end    context.CancelFunc
	idle   *time.Timer // calls end, from Close on
}

// New starts an exporter to dest, which is started (see [Dial]).
func New(dir *chain.Directory, dest otlptrace.Client, o Options) *Exporter {
	o.defaults()
	e := &Exporter{
		opt: o, dest: dest, pack: newPacker(dir, o.Time), size: min(firstBatch, o.MaxBatch),
		wake: make(chan struct{}, 1), closed: make(chan struct{}), done: make(chan struct{}),
	}
	e.ctx, e.end = context.WithCancel(context.Background())
	go e.work()
	return e
}

// Offer queues a chain, or drops it whole; it never waits for the collector.
func (e *Exporter) Offer(c *chain.Chain) {
	n := len(c.Steps) + 1
	sampled := e.opt.SampleEvery == 1 || clock.Mix(0, uint64(c.Conn), 0)%uint64(e.opt.SampleEvery) == 0
	e.mu.Lock()
	defer e.mu.Unlock()
	e.acct.Offered.add(1, n)
	switch {
	case !sampled:
		e.acct.Sampled.add(1, n)
	case e.waits+n > e.opt.MaxQueue:
		e.acct.Queue.add(1, n)
	default:
		e.waits += n
		e.queue = append(e.queue, c)
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
}

// Accounts returns the counts so far.
func (e *Exporter) Accounts() Accounts {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.acct
}

// Close exports what waits and stops. It waits while the collector takes
// something every Options.Drain, and six times as long in all.
func (e *Exporter) Close() Accounts {
	e.once.Do(func() {
		e.mu.Lock()
		e.idle = time.AfterFunc(e.opt.Drain, e.end)
		e.mu.Unlock()
		time.AfterFunc(maxDrains*e.opt.Drain, e.end)
		close(e.closed)
	})
	<-e.done
	e.end()
	return e.Accounts()
}

// work is the exporter's goroutine.
func (e *Exporter) work() {
	defer close(e.done)
	for {
		batch := e.take()
		if batch == nil {
			select {
			case <-e.wake:
				continue
			case <-e.closed:
			}
			if batch = e.take(); batch == nil {
				break
			}
		}
		if !e.deliver(batch) {
			e.giveUp(batch)
			break
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	e.dest.Stop(ctx) //nolint:errcheck // nothing is left to deliver
}

// take removes whole chains of a batch's size from the queue.
func (e *Exporter) take() []*chain.Chain {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, spans := 0, 0
	for n < len(e.queue) {
		s := len(e.queue[n].Steps) + 1
		if n > 0 && spans+s > e.size {
			break
		}
		spans += s
		n++
	}
	if n == 0 {
		e.queue = nil
		return nil
	}
	batch := e.queue[:n:n]
	e.queue = e.queue[n:]
	return batch
}

// deliver exports a batch, again after a growing wait when that fails. It
// returns false when the exporter is to stop with the batch undelivered.
func (e *Exporter) deliver(batch []*chain.Chain) bool {
	packed, spans := e.pack.batch(batch), 0
	for _, c := range batch {
		spans += len(c.Steps) + 1
	}
	closed := e.closed
	wait := e.opt.Backoff
	for try := 1; ; try++ {
		ctx, cancel := context.WithTimeout(e.ctx, e.opt.Timeout)
		err := e.dest.UploadTraces(ctx, packed)
		cancel()
		if err == nil || rejected(err) > 0 {
			e.size = min(2*e.size, e.opt.MaxBatch)
			e.settle(batch, spans, rejected(err), err)
			return true
		}
		e.size = min(firstBatch, e.opt.MaxBatch)
		e.fail(err)
		if try == e.opt.Attempts {
			e.settle(batch, spans, spans, err)
			return true
		}
		if closed != nil && isClosed(closed) {
			closed, wait = nil, e.opt.Backoff
		}
		select {
		case <-time.After(wait):
		case <-closed:
		case <-e.ctx.Done():
		}
		if e.ctx.Err() != nil {
			return false
		}
		wait = min(2*wait, maxBackoff)
	}
}

// fail notes a failed export; that the run's end does not wait any longer is
// the collector's failure only when it is the first.
func (e *Exporter) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.ctx.Err() == nil:
		e.acct.Failures++
		e.acct.LastError = exportError(err)
	case e.acct.LastError == "":
		e.acct.LastError = "not delivered soon enough after the run's end"
	}
}

// exportError is an error in words.
func exportError(err error) string { return "traces export: " + err.Error() }

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// settle books a batch: all exported, or, if the collector rejected some, the
// chains failed in the share of spans.
func (e *Exporter) settle(batch []*chain.Chain, spans, bad int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	bad = min(bad, spans)
	badChains := 0
	if bad > 0 {
		badChains = max(1, len(batch)*bad/spans)
		e.acct.LastError = exportError(err)
	}
	e.acct.Exported.add(len(batch)-badChains, spans-bad)
	e.acct.Failed.add(badChains, bad)
	if e.idle != nil && bad < spans {
		e.idle.Reset(e.opt.Drain)
	}
	e.waits -= spans
}

// giveUp books the batch at hand and all that waits as dropped at the end.
func (e *Exporter) giveUp(batch []*chain.Chain) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range append(batch, e.queue...) {
		e.acct.Closed.add(1, len(c.Steps)+1)
		e.waits -= len(c.Steps) + 1
	}
	e.queue = nil
}

var rejectedText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\((\d+) spans rejected\)`) })

// rejected extracts the number of spans that a collector accepted the request
// without; the SDK tells it in words only.
func rejected(err error) int {
	if err == nil {
		return 0
	}
	m := rejectedText().FindStringSubmatch(err.Error())
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

var errEndpoint = errors.New("telemetry.otlp: want HOST:PORT, grpc://HOST:PORT, http(s)://HOST:PORT or file:PATH")
