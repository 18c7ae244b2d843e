package otlp

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/telemetry/chain"
)

// builder makes spans of chains through the SDK's tracers, what [packer] is
// compared with: one tracer provider a device, so that each span belongs to the
// device where it happened, all with one processor that only collects.
type builder struct {
	dir     *chain.Directory
	time    TimeMap
	tracers map[int32]trace.Tracer
	out     collector
}

func newBuilder(dir *chain.Directory, tm TimeMap) *builder {
	return &builder{dir: dir, time: tm, tracers: map[int32]trace.Tracer{}}
}

// collector is a span processor that keeps what ended.
type collector struct{ spans []sdktrace.ReadOnlySpan }

func (c *collector) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (c *collector) OnEnd(s sdktrace.ReadOnlySpan)                   { c.spans = append(c.spans, s) }
func (c *collector) Shutdown(context.Context) error                  { return nil }
func (c *collector) ForceFlush(context.Context) error                { return nil }

// idKey carries the ids of the span about to start through its context.
type idKey struct{}

type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

// chainIDs is the id generator: it hands out what the context carries.
type chainIDs struct{}

func (chainIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	v := ctx.Value(idKey{}).(ids)
	return v.trace, v.span
}

func (chainIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	return ctx.Value(idKey{}).(ids).span
}

// tracer returns the tracer of a device.
func (b *builder) tracer(dev int32) trace.Tracer {
	if t := b.tracers[dev]; t != nil {
		return t
	}
	name := b.dir.Device(dev)
	res := resource.NewSchemaless(
		attribute.String("service.name", name),
		attribute.String("service.namespace", b.dir.Fabric()),
		attribute.String("net.device", name),
		attribute.Int64("emu.scale", b.time.InForce()),
	)
	p := sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithIDGenerator(chainIDs{}),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithSpanProcessor(&b.out))
	b.tracers[dev] = p.Tracer(scopeName)
	return b.tracers[dev]
}

// spans appends a chain's spans to dst: the request, then the steps.
func (b *builder) spans(dst []sdktrace.ReadOnlySpan, c *chain.Chain) []sdktrace.ReadOnlySpan {
	b.out.spans = dst
	q := b.dir.QP(c.Conn)
	ctx := context.WithValue(context.Background(), idKey{}, ids{c.Trace, c.SpanID(-1)})
	_, root := b.tracer(b.dir.RNICDevice(q.A)).Start(ctx, "request", trace.WithNewRoot(),
		trace.WithTimestamp(b.time.At(c.Posted)), trace.WithAttributes(b.request(c)...))
	if c.Status != 0 || !c.Ended {
		root.SetStatus(codes.Error, c.Outcome())
	}
	for i := range c.Steps {
		b.step(root.SpanContext(), c, i)
	}
	root.End(trace.WithTimestamp(b.time.At(c.End)))
	dst, b.out.spans = b.out.spans, nil
	return dst
}

// step makes the span of step i, linked to the step that caused it.
func (b *builder) step(root trace.SpanContext, c *chain.Chain, i int) {
	s := &c.Steps[i]
	ctx := trace.ContextWithSpanContext(context.Background(), root)
	ctx = context.WithValue(ctx, idKey{}, ids{span: c.SpanID(i)})
	opts := []trace.SpanStartOption{trace.WithTimestamp(b.time.At(s.Since)), trace.WithAttributes(b.attributes(c, s)...)}
	if s.Cause >= 0 {
		sc := trace.NewSpanContext(trace.SpanContextConfig{TraceID: c.Trace, SpanID: c.SpanID(s.Cause), TraceFlags: trace.FlagsSampled})
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: sc, Attributes: []attribute.KeyValue{attribute.String("emu.link", "cause")}}))
	}
	_, sp := b.tracer(s.Dev).Start(ctx, s.Name(), opts...)
	if s.Kind == record.Drop || s.Name() == "error" {
		sp.SetStatus(codes.Error, s.Text(b.dir))
	}
	sp.End(trace.WithTimestamp(b.time.At(s.Until)))
}

// request are the attributes of the root span.
func (b *builder) request(c *chain.Chain) []attribute.KeyValue {
	q := b.dir.QP(c.Conn)
	l := b.dir.FlowName(c.Flow)
	return append(interval(c.Posted, c.End),
		attribute.String("rdma.flow", l), attribute.Int64("rdma.request", c.Request),
		attribute.String("rdma.src", b.dir.RNIC(q.A)), attribute.String("rdma.dst", b.dir.RNIC(q.B)),
		attribute.Int64("rdma.qpn", int64(q.BQPN)), attribute.Int64("rdma.src_qpn", int64(q.AQPN)),
		attribute.Int64("rdma.psn", int64(c.PSN)), attribute.String("rdma.cause", c.Cause()),
		attribute.String("rdma.status", c.Outcome()), attribute.Int("rdma.retry", c.Rounds),
		attribute.Int("rdma.retransmitted_packets", c.Resends), attribute.Int("emu.folded_steps", c.Folded),
	)
}

func interval(from, to clock.Time) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.Int64("emu.vt_ps", int64(from)), attribute.Int64("emu.dur_ps", int64(to.Sub(from)))}
}

// attributes are those of one step.
func (b *builder) attributes(c *chain.Chain, s *chain.Step) []attribute.KeyValue {
	at := append(interval(s.Since, s.Until),
		attribute.String("net.device", b.dir.Device(s.Dev)), attribute.Int64("rdma.qpn", int64(s.QPN)),
		attribute.Int64("rdma.psn", int64(s.PSN)))
	if s.Port != 0 {
		at = append(at, attribute.Int("net.port", int(s.Port)))
	}
	add := func(kv attribute.KeyValue) { at = append(at, kv) }
	switch s.Kind {
	case record.Drop:
		add(attribute.String("rdma.opcode", wire.Opcode(s.Op).String()))
		add(attribute.Int("rdma.transmission", int(s.Iter)))
		add(attribute.String("drop.reason", record.Reason(s.Reason).String()))
		add(attribute.Int64("queue.bytes", s.X))
		add(attribute.Int("net.priority", int(s.Prio)))
		if name, kind := b.dir.Fault(s.Fault); name != "" {
			at = append(at, attribute.String("fault.name", name), attribute.String("fault.kind", kind))
		} else if s.Fault > 0 {
			add(attribute.Int("fault.id", int(s.Fault)))
		}
	case record.OutOfSeq:
		add(attribute.Int64("rdma.psn_received", s.X))
	case record.NakSent, record.NakRecv:
		add(attribute.Int("rdma.syndrome", int(s.Reason)))
	case record.RnrSent:
		add(attribute.Int64("rdma.rnr_timer", s.X))
	case record.Timeout:
		add(attribute.Int64("rdma.retries_left", s.X))
	case record.Rewind:
		add(attribute.Int64("rdma.psn_from", s.X))
	case record.Retransmit:
		add(attribute.String("rdma.opcode", wire.Opcode(s.Op).String()))
		add(attribute.Int("rdma.transmission", int(s.Iter)))
	case record.ReqDone:
		add(attribute.String("rdma.status", chain.StatusName(uint8(s.Y))))
	case record.QPError:
		add(attribute.String("rdma.status", chain.StatusName(s.Reason)))
	}
	return at
}
