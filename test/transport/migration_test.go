package transport

import (
	"strings"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report"
)

const twoPorts = `schema: 1
name: migration
topology: {spines: 0, leaves: 1, servers: 2, ports: 2, links: {server: {rate: 100Gbps, length: 100m}}}
rnics: {all: {qp: {timeout: 10, retry_cnt: 3, initial_psn: 100, alt_path: {port: 2}}}}
workload:
  - {name: s, from: rnic1, to: rnic2, verb: send, size: 100B, count: 3, interval: 20ms}
`

// TestMigration is T-C46: both sides ARMED, the primary path swallows
// everything. After 1 + 3 sends the same PSN goes out over the second port with
// M = 1, the responder migrates on it, the answer comes back the same way, and
// no completion is in error.
func TestMigration(t *testing.T) {
	o := run(t, twoPorts+"faults: [\"drop rnic1:1 name=hole dir=out\"]\n")
	const T = 4194304 * clock.Nanosecond
	if f := o.Flows["s"]; f.Completed != 3 || f.Failed != 0 || f.Retransmitted != 4 {
		t.Errorf("flow %+v", f)
	}
	for k := uint32(1); k <= 2; k++ {
		m := o.of(k, record.Migrate)
		if len(m) != 1 || m[0].X != 1 || m[0].At < clock.Time(4*T) || m[0].At > clock.Time(4*T+10*clock.Microsecond) {
			t.Errorf("rnic%d: migrations %+v", k, m)
		}
		c, ok := o.nic(k).QPContext(0x11)
		if !ok || c.Migration != "MIGRATED" || c.Path != "alternate" || c.Port != 2 || c.State != "RTS" || c.RetryLeft != 3 {
			t.Errorf("rnic%d: context %+v", k, c)
		}
	}
	if again := o.of(1, record.Retransmit); len(again) != 4 || again[3].At != clock.Time(4*T) || again[3].PSN != 100 {
		t.Errorf("retransmissions %+v", again)
	}
	a, b := o.RNICs["rnic1"], o.RNICs["rnic2"]
	if a.TransportExceeded != 0 || a.ReqCQEError != 0 || b.OutOfSequence != 0 || a.LocalAckTimeoutErr != 4 {
		t.Errorf("counters %+v and %+v", a, b)
	}
	// leaf1: ports 1 and 2 face rnic1, 3 and 4 face rnic2.
	sw := o.Switches["leaf1"].Ports
	if in := sw["2"]; in.RxFrames != 3 || sw["1"].RxFrames != 0 || sw["2"].TxFrames != 3 || sw["4"].RxFrames != 3 || sw["3"].TxFrames != 0 {
		t.Errorf("ports 1 to 4: %+v %+v %+v %+v", sw["1"], sw["2"], sw["3"], sw["4"])
	}
}

// TestMigrationReturns holds that a QP without an armed alternate dies as T-C24
// does, and that one migration does not arm the next.
func TestMigrationReturns(t *testing.T) {
	o := run(t, twoPorts+"faults: [\"drop rnic1:1 name=hole dir=out\", \"drop rnic1:2 name=second dir=out at=30ms\"]\n")
	f := o.Flows["s"]
	if f.Completed != 2 || f.Status != "retry_exc_err" {
		t.Errorf("flow %+v", f)
	}
	if c := o.RNICs["rnic1"]; c.TransportExceeded != 1 {
		t.Errorf("counters %+v", c)
	}
}

// TestAltTimeout holds that the alternate path has its own timeout.
func TestAltTimeout(t *testing.T) {
	text := `schema: 1
name: migration
topology: {spines: 0, leaves: 1, servers: 2, ports: 2}
rnics: {all: {qp: {timeout: 10, alt_timeout: 12, retry_cnt: 1, alt_path: {port: 2}}}}
workload: [{name: s, from: rnic1, to: rnic2, verb: send, size: 100B}]
faults: ["drop rnic1:1 name=hole dir=out", "drop rnic1:2 name=second dir=out"]
`
	o := run(t, text)
	// Two expiries of 2^10 move the QP over; two of 2^12 end it.
	const unit = 4096
	if got, want := int64(o.Flows["s"].LastEndNS), int64(clock.Duration(2*unit<<10+2*unit<<12)*clock.Nanosecond); got != want {
		t.Errorf("ends at %d ps, want %d", got, want)
	}
}

// TestRandomMigration is TestRandomLosses with an alternate path loaded and
// losses that outlast the retries of one path.
func TestRandomMigration(t *testing.T) {
	moved := 0
	for seed := uint64(1); seed <= 200; seed++ {
		text := strings.NewReplacer("servers: 2,", "servers: 2, ports: 2,", "qp: {", "qp: {alt_path: {port: 2}, alt_timeout: 9, ",
			"count=3", "count=40").Replace(random(seed, seed%2 == 0))
		o := run(t, text)
		if o.Verdict != report.Complete {
			t.Fatalf("seed %d: %s: %s\n%s", seed, o.Verdict, o.VerdictReason, text)
		}
		for name, f := range o.Flows {
			if f.Completed+f.Failed != f.Requests {
				t.Fatalf("seed %d: %s: %d completed and %d failed of %d\n%s", seed, name, f.Completed, f.Failed, f.Requests, text)
			}
		}
		for k := uint32(1); k <= uint32(len(o.plan.RNICs)); k++ {
			moved += len(o.of(k, record.Migrate))
		}
	}
	if moved < 20 {
		t.Errorf("%d migrations: the patterns are too tame", moved)
	}
}
