package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	colpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/rocemu/rocemu/report"
)

// lossy retransmits some 50,000 packets in a fraction of a CPU second.
const lossy = `schema: 1
name: lossy
topology: {spines: 2, leaves: 2, servers: 8}
workload:
  - {name: perm, pattern: permutation, shift: 8, verb: write, size: 1MB, count: 24}
faults:
  - loss leaf1:uplink1 name=l1 probability=0.004
  - loss leaf1:uplink2 name=l2 probability=0.004
`

// stalling is a collector of traces that answers nothing for a while.
type stalling struct {
	colpb.UnimplementedTraceServiceServer
	stall time.Duration

	mu    sync.Mutex
	until time.Time // of the stall, from the first request on
	ids   map[string]int
}

func (s *stalling) Export(_ context.Context, r *colpb.ExportTraceServiceRequest) (*colpb.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	if s.until.IsZero() {
		s.until = time.Now().Add(s.stall)
	}
	wait := time.Until(s.until)
	s.mu.Unlock()
	time.Sleep(wait) // the stall is what is tested
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rs := range r.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			for _, sp := range ss.Spans {
				s.ids[string(sp.TraceId)+string(sp.SpanId)]++
			}
		}
	}
	return &colpb.ExportTraceServiceResponse{}, nil
}

// serve starts the collector and returns its address.
func (s *stalling) serve(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer(grpc.MaxRecvMsgSize(64 << 20))
	colpb.RegisterTraceServiceServer(g, s)
	go g.Serve(l) //nolint:errcheck // ends with Stop
	t.Cleanup(g.Stop)
	return l.Addr().String()
}

// runJSON runs a file from the command line and reads what it prints.
func runJSON(t *testing.T, args ...string) *report.Result {
	t.Helper()
	var out, errs bytes.Buffer
	if code := emuctl(append([]string{"run", "--json"}, args...), &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	r := new(report.Result)
	if err := json.Unmarshal(out.Bytes(), r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestStalledCollectorOfARun has a whole run export 50,000 spans to a collector
// that stalls for two seconds: the run neither waits nor changes, and every
// chain is accounted for, on both sides.
func TestStalledCollectorOfARun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lossy.yaml")
	if err := os.WriteFile(file, []byte(lossy), 0o644); err != nil {
		t.Fatal(err)
	}
	bare := runJSON(t, file)
	c := &stalling{stall: 2 * time.Second, ids: map[string]int{}}
	r := runJSON(t, file, "--set", "telemetry.otlp="+c.serve(t))
	if r.Digest != bare.Digest {
		t.Errorf("digest %s, without a collector %s", r.Digest, bare.Digest)
	}
	spans := 0
	for _, tr := range r.Traces {
		spans += len(tr.SpanIDs)
	}
	n, e := r.Telemetry, r.Telemetry.Exports[0]
	if n.ChainsUnlisted != 0 || spans < 50_000 {
		t.Fatalf("%d spans of %d chains, %d unlisted", spans, n.ChainsMade, n.ChainsUnlisted)
	}
	if e.ChainsExported+e.ChainsDropped != n.ChainsMade || e.SpansExported+e.SpansDropped != uint64(spans) {
		t.Errorf("account %+v of %d chains, %d spans", e, n.ChainsMade, spans)
	}
	// Nothing has to be dropped: the queue is long enough, and so is the wait at
	// the end.
	if e.ChainsDropped != 0 || len(c.ids) != spans {
		t.Errorf("the collector has %d spans, account %+v", len(c.ids), e)
	}
	for id, k := range c.ids {
		if k != 1 {
			t.Fatalf("span %x came %d times", id, k)
		}
	}
	// The collector has no service for metrics: every sample failed.
	if m := n.Samples; m == nil || m.Made < 10 || m.Exported+m.Dropped != m.Made || m.LastError == "" {
		t.Errorf("samples %+v", m)
	}
	// A loose bound, and three attempts, for a busy machine: with the stall in it
	// every run would take two seconds longer.
	late := func() bool { return r.Engine.WallS > 1+1.5*bare.Engine.WallS }
	for try := 1; late(); try++ {
		if try == 3 {
			t.Fatalf("the run took %.2f s, without a collector %.2f s", r.Engine.WallS, bare.Engine.WallS)
		}
		again := &stalling{stall: 2 * time.Second, ids: map[string]int{}}
		bare, r = runJSON(t, file), runJSON(t, file, "--set", "telemetry.otlp="+again.serve(t))
	}
	t.Logf("%d spans; %.2f s (%.2f CPU s of the process), without a collector %.2f s (%.2f)",
		spans, r.Engine.WallS, r.Engine.CPUS, bare.Engine.WallS, bare.Engine.CPUS)
}
