package otlp

import (
	"encoding/binary"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/telemetry/chain"
)

// scopeName is the instrumentation scope of all spans.
const scopeName = "github.com/rocemu/rocemu/telemetry"

// packer writes the spans of chains as they are on the wire, grouped by the
// device where they happened: what the SDK's tracers and its transformation
// would make of them, at a twentieth of the work and without an object a span.
// Its buffers are used again for the next batch. Not safe for concurrent use.
type packer struct {
	dir     *chain.Directory
	time    TimeMap
	devices map[int32]*deviceSpans
	touched []*deviceSpans // those of the batch, in order of their first span
	root    [8]byte        // span of the chain's request
	span    []byte         // the one being written
	link    []byte
}

// deviceSpans are the spans of a device.
type deviceSpans struct {
	resource []byte // ResourceSpans.resource, whole
	spans    []byte // ScopeSpans.spans of the batch
	packed   []byte // the ResourceSpans
}

func newPacker(dir *chain.Directory, tm TimeMap) *packer {
	return &packer{dir: dir, time: tm, devices: map[int32]*deviceSpans{}}
}

// scopeField is ScopeSpans.scope.
var scopeField = sync.OnceValue(func() []byte {
	return appendText(nil, scopeSpansScope, marshal(&commonpb.InstrumentationScope{Name: scopeName}))
})

// marshal encodes a message that is made here, of valid text.
func marshal(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic("otlp: " + err.Error())
	}
	return b
}

// batch packs chains. Put into the messages as fields that they do not know,
// the bytes go to the collector as they are; they are valid until the next call.
func (p *packer) batch(chains []*chain.Chain) []*tracepb.ResourceSpans {
	for _, d := range p.touched {
		d.spans = d.spans[:0]
	}
	p.touched = p.touched[:0]
	for _, c := range chains {
		p.root = c.SpanID(-1)
		for i := range c.Steps {
			p.step(c, i)
		}
		p.request(c) // it ends last
	}
	out := make([]*tracepb.ResourceSpans, len(p.touched))
	for i, d := range p.touched {
		b := append(d.packed[:0], d.resource...)
		b = protowire.AppendVarint(append(b, resourceSpansScopes), uint64(len(scopeField())+len(d.spans)))
		d.packed = append(append(b, scopeField()...), d.spans...)
		out[i] = new(tracepb.ResourceSpans)
		out[i].ProtoReflect().SetUnknown(d.packed)
	}
	return out
}

// device returns the spans of a device; the first of a batch lists it.
func (p *packer) device(dev int32) *deviceSpans {
	d := p.devices[dev]
	if d == nil {
		name := p.dir.Device(dev)
		if name == "" {
			name = "fabric"
		}
		res := resource.NewSchemaless(
			attribute.String("service.name", name),
			attribute.String("service.namespace", p.dir.Fabric()),
			attribute.String("net.device", name),
			attribute.Int64("emu.scale", p.time.InForce()),
		)
		d = &deviceSpans{resource: packResource(res)}
		p.devices[dev] = d
	}
	if len(d.spans) == 0 {
		p.touched = append(p.touched, d)
	}
	return d
}

// packResource is ResourceSpans.resource.
func packResource(r *resource.Resource) []byte {
	var b []byte
	for _, kv := range r.Attributes() {
		switch k := key(string(kv.Key)); kv.Value.Type() {
		case attribute.INT64:
			b = k.number(b, resourceAttributes, kv.Value.AsInt64())
		default:
			b = k.text(b, resourceAttributes, kv.Value.AsString())
		}
	}
	return appendText(nil, resourceSpansResource, b)
}

// end puts the span at hand, which is whole but for its flags, into its device's.
func (p *packer) end(b []byte, dev int32) {
	b = protowire.AppendTag(b, spanFlags, protowire.Fixed32Type)
	p.span = binary.LittleEndian.AppendUint32(b, flags)
	d := p.device(dev)
	d.spans = appendText(d.spans, scopeSpansSpans, p.span)
}

// flags of spans and links: sampled, and the parent is known not to be remote.
const flags = uint32(trace.FlagsSampled) | uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK)

// begin starts a span: ids, name and times.
func (p *packer) begin(c *chain.Chain, id [8]byte, name string, from, to clock.Time) []byte {
	b := appendText(p.span[:0], spanTraceID, c.Trace[:])
	b = appendText(b, spanID, id[:])
	if id != p.root {
		b = appendText(b, spanParent, p.root[:])
	}
	b = appendText(b, spanName, name)
	b = append(b, spanKind, byte(tracepb.Span_SPAN_KIND_INTERNAL))
	b = appendFixed64(b, spanStart, p.nanos(from))
	b = appendFixed64(b, spanEnd, p.nanos(to))
	b = vtPS.number(b, spanAttributes, int64(from))
	return durPS.number(b, spanAttributes, int64(to.Sub(from)))
}

func (p *packer) nanos(t clock.Time) uint64 { return uint64(max(0, p.time.At(t).UnixNano())) }

// status appends the status of a span: an error with a message, or none.
func status(b []byte, failed bool, message string) []byte {
	if !failed {
		return append(b, spanStatus, 0)
	}
	n := 2
	if message != "" {
		n += 1 + protowire.SizeBytes(len(message))
	}
	b = protowire.AppendVarint(append(b, spanStatus), uint64(n))
	if message != "" {
		b = appendText(b, statusMessage, message)
	}
	return append(b, statusCode, byte(tracepb.Status_STATUS_CODE_ERROR))
}

// step packs the span of step i, linked to the step that caused it.
func (p *packer) step(c *chain.Chain, i int) {
	s := &c.Steps[i]
	b := p.begin(c, c.SpanID(i), s.Name(), s.Since, s.Until)
	b = p.attributes(b, s)
	if s.Cause >= 0 {
		id := c.SpanID(s.Cause)
		l := appendText(p.link[:0], linkTraceID, c.Trace[:])
		l = appendText(l, linkSpanID, id[:])
		l = linkKind.text(l, linkAttributes, "cause")
		p.link = binary.LittleEndian.AppendUint32(append(l, linkFlags), flags)
		b = appendText(b, spanLinks, p.link)
	}
	failed, why := s.Kind == record.Drop || s.Name() == "error", ""
	if failed {
		why = s.Text(p.dir)
	}
	p.end(status(b, failed, why), s.Dev)
}

// request packs the root span.
func (p *packer) request(c *chain.Chain) {
	q := p.dir.QP(c.Conn)
	const tag = spanAttributes
	b := p.begin(c, p.root, "request", c.Posted, c.End)
	b = rdmaFlow.text(b, tag, p.dir.FlowName(c.Flow))
	b = rdmaRequest.number(b, tag, c.Request)
	b = rdmaSrc.text(b, tag, p.dir.RNIC(q.A))
	b = rdmaDst.text(b, tag, p.dir.RNIC(q.B))
	b = rdmaQPN.number(b, tag, int64(q.BQPN))
	b = rdmaSrcQPN.number(b, tag, int64(q.AQPN))
	b = rdmaPSN.number(b, tag, int64(c.PSN))
	b = rdmaCause.text(b, tag, c.Cause())
	b = rdmaStatus.text(b, tag, c.Outcome())
	b = rdmaRetry.number(b, tag, int64(c.Rounds))
	b = rdmaResent.number(b, tag, int64(c.Resends))
	b = foldedSteps.number(b, tag, int64(c.Folded))
	p.end(status(b, c.Status != 0 || !c.Ended, c.Outcome()), p.dir.RNICDevice(q.A))
}
