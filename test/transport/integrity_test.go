package transport

import (
	"context"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
)

const mixed = pair + `
workload:
  - {name: s, from: rnic1, to: rnic2, verb: send, size: 5000B, count: 4, qp: a}
  - {name: i, from: rnic1, to: rnic2, verb: send-imm, size: 100B, count: 4, qp: a}
  - {name: v, from: rnic1, to: rnic2, verb: send-inv, size: 3000B, count: 4}
  - {name: w, from: rnic2, to: rnic1, verb: write, size: 70KB, count: 4}
  - {name: wi, from: rnic1, to: rnic2, verb: write-imm, size: 1B, count: 4}
  - {name: z, from: rnic1, to: rnic2, verb: write, size: 0B, count: 4}
  - {name: r, from: rnic1, to: rnic2, verb: read, size: 9000B, count: 4}
  - {name: f, from: rnic1, to: rnic2, verb: fetch-add, size: 8B, add: 3, count: 4}
`

// TestForgedContent holds that a run of all verbs without a fault raises
// nothing, and that bytes which nobody sent, accepted at the expected PSN, fail
// the run with the place named.
func TestForgedContent(t *testing.T) {
	o := run(t, mixed)
	if o.Verdict != report.Complete || len(o.Findings) != 0 || o.Flows["f"].Atomic.Memory != 12 {
		t.Errorf("%s %+v", o.Verdict, o.Findings)
	}
	plan := load(t, pair+`
run: {until: 1ms}
workload: [{name: w, from: rnic1, to: rnic2, verb: write, size: 100B}]
faults: ["inject rnic1:1 name=forged at=100us dir=out opcode=send-only psn=1 size=100B"]
`)
	res, err := sim.Run(context.Background(), plan, sim.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if res.Verdict != report.Failed || res.Exit != report.ExitFailed || !strings.Contains(res.VerdictReason, "QPN 0x11 received wrong content") {
		t.Errorf("%s: %s", res.Verdict, res.VerdictReason)
	}
}
