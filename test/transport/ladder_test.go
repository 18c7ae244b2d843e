package transport

import (
	"fmt"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report"
)

// TestDeadPath holds the ladder of timeout 14, retry 7 on a path that never
// answers: the packet leaves at t0 + k·T, the error comes at exactly 8·T =
// 536.870912 ms after the dequeue of the first.
func TestDeadPath(t *testing.T) {
	o := run(t, pair+`
workload:
  - {name: w, from: rnic1, to: rnic2, verb: write, size: 100B, start: 3us}
faults:
  - drop rnic1:1 name=hole dir=out
`)
	const T = 67108864 * clock.Nanosecond
	t0 := clock.Time(3 * clock.Microsecond)
	f := o.Flows["w"]
	if f.Status != "retry_exc_err" || f.LastEndNS != report.NS(t0.Add(8*T)) || 8*T != 536870912*clock.Nanosecond {
		t.Errorf("%s at %v, want retry_exc_err at %v", f.Status, f.LastEndNS, t0.Add(8*T))
	}
	again := o.of(1, record.Retransmit)
	if len(again) != 7 {
		t.Fatalf("%d retransmissions, want 7", len(again))
	}
	for i, r := range again {
		if want := t0.Add(T * clock.Duration(i+1)); r.At != want || int(r.Iter) != i+2 {
			t.Errorf("retransmission %d at %v as iteration %d, want %v", i+1, r.At, r.Iter, want)
		}
	}
	c := o.RNICs["rnic1"]
	if c.LocalAckTimeoutErr != 7 || c.TransportExceeded != 1 || c.TxPackets != 8 {
		t.Errorf("counters %+v", c)
	}
	if ctx, ok := o.nic(1).QPContext(0x11); !ok || ctx.State != "ERR" || ctx.RetryLeft != 0 || ctx.Timers.Effective != T {
		t.Errorf("context %+v", ctx)
	}
}

// TestOutage holds that a link down for 468 ms is survived and one of 472 ms
// is not: the last chance is the send at 7·T = 469.762 ms.
func TestOutage(t *testing.T) {
	for ms, status := range map[int]string{468: "success", 469: "success", 470: "retry_exc_err", 472: "retry_exc_err"} {
		o := run(t, pair+fmt.Sprintf(`
workload:
  - {name: w, from: rnic1, to: rnic2, verb: write, size: 1MiB, start: 1ms}
faults:
  - link-down leaf1:2 name=cut at=1ms for=%dms
`, ms))
		f := o.Flows["w"]
		if f.Status != status {
			t.Errorf("down %d ms: %s, want %s", ms, f.Status, status)
		}
		c := o.RNICs["rnic1"]
		if c.LocalAckTimeoutErr != 7 {
			t.Errorf("down %d ms: local_ack_timeout_err %d", ms, c.LocalAckTimeoutErr)
		}
		if status != "success" && f.LastEndNS != report.NS(clock.Time(537870912*clock.Nanosecond)) {
			t.Errorf("down %d ms: ends at %v", ms, f.LastEndNS)
		}
	}
}

// TestFloor holds that a timeout below the device's floor is replaced by it,
// and that the record, the finding and the QP's context tell so.
func TestFloor(t *testing.T) {
	o := run(t, pair+`
rnics: {all: {qp: {timeout: 1, timeout_floor: 1ms, retry_cnt: 1}}}
workload:
  - {name: w, from: rnic1, to: rnic2, verb: write, size: 100B}
faults:
  - drop rnic1:1 name=hole dir=out
`)
	if got := o.Flows["w"].LastEndNS; got != report.NS(clock.Time(2*clock.Millisecond)) {
		t.Errorf("ends at %v, want 2 ms", got)
	}
	rec := o.of(1, record.Clamp)
	if len(rec) != 1 || rec[0].X != int64(8192*clock.Nanosecond) || rec[0].Y != int64(clock.Millisecond) {
		t.Errorf("records %+v", rec)
	}
	if !found(o, "timeout-clamped", "rnic1") || found(o, "timeout-clamped", "rnic2") {
		t.Errorf("findings %+v", o.Findings)
	}
	c, _ := o.nic(1).QPContext(0x11)
	if x := c.Timers; x.Proposed != 8192*clock.Nanosecond || x.Floor != clock.Millisecond || x.Effective != clock.Millisecond || !x.Clamped {
		t.Errorf("timers %+v", x)
	}
}

func found(o *outcome, code, where string) bool {
	for _, f := range o.Findings {
		if f.Code == code && f.Where == where {
			return true
		}
	}
	return false
}

// TestConnect holds the timeouts that the connection manager makes of path
// lifetime and ACK delay, in force on the wire.
func TestConnect(t *testing.T) {
	const unit = 4096 * clock.Nanosecond
	for mode, want := range map[string]clock.Duration{
		"ibta": unit << 6, "linux": unit << 5, "exact": unit * (2<<4 + 1<<3), "article": unit * (2*4 + 3),
	} {
		o := run(t, pair+fmt.Sprintf(`
rnics:
  all: {qp: {connect: cm, packet_life: 4, ack_delay: 9, retry_cnt: 0, timeout_mode: %s}}
  devices: {rnic2: {qp: {ack_delay: 3, max_dest_rd_atomic: 2}}}
workload:
  - {name: w, from: rnic1, to: rnic2, verb: write, size: 100B}
faults:
  - drop rnic1:1 name=hole dir=out
`, mode))
		if got := o.Flows["w"].LastEndNS; got != report.NS(clock.Time(want)) {
			t.Errorf("%s: fails at %v, want %v", mode, got, want)
		}
		c, _ := o.nic(1).QPContext(0x11)
		if c.Connect != "cm" || c.Timers.Effective != want || c.Timers.Mode != mode || c.MaxRdAtomic != 2 {
			t.Errorf("%s: context %+v", mode, c)
		}
	}
}
