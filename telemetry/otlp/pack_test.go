package otlp

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/telemetry/chain"
)

// keeping is an OTLP client that keeps what it is to send.
type keeping struct{ got []*tracepb.ResourceSpans }

func (*keeping) Start(context.Context) error { return nil }
func (*keeping) Stop(context.Context) error  { return nil }
func (k *keeping) UploadTraces(_ context.Context, rs []*tracepb.ResourceSpans) error {
	k.got = rs
	return nil
}

// everyKind is a chain with a step of each kind, and of each way that the
// attributes of one can be.
func everyKind(d *chain.Directory) *chain.Chain {
	c := story(d, 0, 3)
	for k := record.Kind(0); k < 64; k++ {
		for i, r := range []record.Record{
			{Port: 7, Prio: 3, Reason: 9, Fault: 1, X: -1, Y: 12, Op: 0xff, Iter: 255},
			{Fault: 99, X: 1 << 40, Op: 4},
			{Reason: 200, Y: 300, X: 0},
		} {
			r.Kind, r.At, r.Dev, r.Seq, r.PSN, r.QPN = k, clock.Time(k)*1000+clock.Time(i), int32(i), uint32(k), 1<<24-1, 1<<24-1
			c.Steps = append(c.Steps, chain.Step{Record: r, Since: r.At, Until: r.At.Add(clock.Duration(i)), Cause: i - 1})
		}
	}
	return c
}

// What is packed is what the SDK makes of the same chains, field by field: all
// kinds of steps, a request that failed, a time before 1970.
func TestPackedIsWhatTheSDKMakes(t *testing.T) {
	d := testDirectory(3)
	failed := story(d, 1, 1)
	failed.Status, failed.Flow = 12, -1
	open := story(d, 2, 0)
	open.Ended, open.Posted = false, -clock.Time(1<<62)
	chains := []*chain.Chain{everyKind(d), failed, open}
	p, b := newPacker(d, TimeMap{Epoch: epoch, Scale: 3000}), newBuilder(d, TimeMap{Epoch: epoch, Scale: 3000})
	for _, batch := range [][]*chain.Chain{chains, chains[1:2], chains} { // buffers are used again
		var spans []sdktrace.ReadOnlySpan
		for _, c := range batch {
			spans = b.spans(spans, c)
		}
		k := new(keeping)
		if err := otlptrace.NewUnstarted(k).ExportSpans(t.Context(), spans); err != nil {
			t.Fatal(err)
		}
		want := &tracepb.TracesData{ResourceSpans: k.got}
		got := new(tracepb.TracesData)
		if err := proto.Unmarshal(marshal(&tracepb.TracesData{ResourceSpans: p.batch(batch)}), got); err != nil {
			t.Fatal(err)
		}
		if len(got.ProtoReflect().GetUnknown()) > 0 {
			t.Error("unknown fields")
		}
		// The SDK groups by a map.
		slices.SortFunc(want.ResourceSpans, func(x, y *tracepb.ResourceSpans) int { return cmp.Compare(first(got, x), first(got, y)) })
		if !proto.Equal(got, want) {
			g, w := prototext.Format(got), prototext.Format(want)
			i := 0
			for i < min(len(g), len(w)) && g[i] == w[i] {
				i++
			}
			t.Errorf("packed, from byte %d of the text:\n%.900s\nby the SDK:\n%.900s", i, g[max(0, i-200):], w[max(0, i-200):])
		}
	}
}

// first is the place of a resource in d.
func first(d *tracepb.TracesData, r *tracepb.ResourceSpans) int {
	return slices.IndexFunc(d.ResourceSpans, func(x *tracepb.ResourceSpans) bool { return proto.Equal(x.Resource, r.Resource) })
}

// Packing allocates no more than a message a device once its buffers are there,
// and the names of flows and losses.
func TestPackingAllocates(t *testing.T) {
	d := testDirectory(1)
	c := story(d, 0, 200)
	p := newPacker(d, TimeMap{Epoch: epoch})
	batch := []*chain.Chain{c}
	if n := testing.AllocsPerRun(20, func() { p.batch(batch) }); n > 40 {
		t.Errorf("%v objects for %d spans", n, len(c.Steps)+1)
	}
}

func BenchmarkPack(b *testing.B) {
	d := testDirectory(1)
	batch := []*chain.Chain{story(d, 0, 250)}
	p := newPacker(d, TimeMap{Epoch: epoch})
	for b.Loop() {
		p.batch(batch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(batch[0].Steps)+1), "ns/span")
}

func BenchmarkSDK(b *testing.B) {
	d := testDirectory(1)
	c := story(d, 0, 250)
	m := newBuilder(d, TimeMap{Epoch: epoch})
	e := otlptrace.NewUnstarted(new(keeping))
	for b.Loop() {
		if err := e.ExportSpans(b.Context(), m.spans(nil, c)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(c.Steps)+1), "ns/span")
}
