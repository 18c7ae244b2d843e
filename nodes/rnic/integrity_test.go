package rnic

import (
	"strings"
	"testing"

	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

const pairFile = `schema: 1
name: pair
topology: {spines: 0, leaves: 1, servers: 2}
workload: [{name: w, from: rnic1, to: rnic2, verb: write, size: 3000B}]
`

// twins are the two RNICs of pairFile; their ports are held, so that nothing
// leaves them by itself.
func twins(t *testing.T) (a, b *RNIC) {
	t.Helper()
	plan, _, err := topology.LoadBytes("pair.yaml", []byte(pairFile))
	if err != nil {
		t.Fatal(err)
	}
	idx := NewIndex(plan)
	a, b = New(plan, plan.RNICs[0], idx), New(plan, plan.RNICs[1], idx)
	a.ports[0].queued, b.ports[0].queued = true, true
	return a, b
}

// invariants counts the findings that fail a run.
func invariants(r *RNIC) int {
	part := new(report.Part)
	r.Fill(part, 0)
	n := 0
	for _, f := range part.Findings {
		if f.Code == report.CodeInvariant && strings.Contains(f.Text, "wrong content") {
			n++
		}
	}
	return n
}

// TestIntegrity sends each verb's packets and the answers, clean and with one
// bit of the content tag flipped in the n-th frame: clean traffic raises
// nothing, a flipped bit in any frame with content fails the run.
func TestIntegrity(t *testing.T) {
	for verb := qp.Send; verb <= qp.Read; verb++ {
		for flip := -1; flip < 6; flip++ {
			a, b := twins(t)
			pa, pb := a.use(0), b.use(0)
			wr := qp.WR{VA: 1 << 32, Len: 3000, RKey: KeyGood, Verb: verb}
			if verb == qp.SendInv {
				wr.Imm = KeyGood
			}
			if !pa.q.Req.Post(0, &wr, &a.fx) {
				t.Fatal("not posted")
			}
			flipped, n := 0, 0
			pass := func(to *RNIC, f wire.Frame) {
				if f.Op() != wire.Acknowledge && f.Op() != wire.ReadRequest {
					if n == flip {
						f.C ^= 1 << 17
						flipped++
					}
					n++
				}
				f.At = 1
				to.ports[0].queued = true
				to.accept(1, 0, &f)
			}
			var f wire.Frame
			for pa.q.Req.NextPacket(0, &f) {
				pass(b, f)
			}
			for pb.q.Resp.NextResponse(1, &f) {
				a.outstanding, a.flows[0].starts = 1, append(a.flows[0].starts[:0], 0)
				pass(a, f)
			}
			if got := invariants(a) + invariants(b); got != flipped {
				t.Errorf("verb %d, frame %d of %d changed: %d findings, want %d", verb, flip, n, got, flipped)
			}
			if a.cnt.IntegrityErrors+b.cnt.IntegrityErrors != uint64(flipped) || n < 3 {
				t.Errorf("verb %d: %d frames with content, counters %d and %d", verb, n, a.cnt.IntegrityErrors, b.cnt.IntegrityErrors)
			}
		}
	}
}

// A state in which more responders wait than there are is refused.
func TestWaitsOfAStateAreBounded(t *testing.T) {
	for waits, ok := range map[int32]bool{0: true, 1: true, 2: false, -1: false, 1<<31 - 1: false} {
		a, _ := twins(t)
		a.waits = waits
		var w snap.Writer
		a.Snapshot(&w)
		b, _ := twins(t)
		if err := b.Restore(&snap.Reader{B: w.B}); (err == nil) != ok {
			t.Errorf("%d that wait of one queue pair: %v", waits, err)
		}
	}
}
