package transport

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report"
)

// racks is a fabric of two racks. T of 2^8 is 1.048576 ms.
const racks = `schema: 1
name: random
run: {limit: 5s}
topology: {spines: 2, leaves: 2, servers: 2, links: {server: {rate: 25Gbps, length: 3m}, uplink: {rate: 100Gbps, length: 100m}}}
rnics: {all: {mtu: %d, recovery: %s, qp: {timeout: 8, retry_cnt: %d, min_rnr_timer: %d, rnr_retry: 7, recv_queue: %d, recv_repost: 30us, max_rd_atomic: %d, initial_psn: %d}}}
workload:
`

var (
	verbs   = []string{"send", "send-imm", "send-inv", "write", "write-imm", "read", "cmp-swap", "fetch-add"}
	kinds   = []string{"drop", "drop", "duplicate", "duplicate", "delay", "delay", "reorder", "corrupt", "corrupt", "mark-ce"}
	schemes = []string{"go-back-n", "go-back-n", "go-back-n", "selective-repeat", "go-back-0"}
)

// random is a workload of mixed verbs and a finite loss pattern by exact
// packets: n-th transmission of the n-th packet, n-th ACK, NAK, RNR, response.
// With mean, frames are also damaged, doubled, held back and swapped.
func random(seed uint64, mean bool) string {
	r := rand.New(rand.NewPCG(seed, 7))
	var b strings.Builder
	psn := r.IntN(1 << 24)
	if r.IntN(3) == 0 {
		psn = 1<<24 - 1 - r.IntN(8)
	}
	fmt.Fprintf(&b, racks, 256<<r.IntN(3), schemes[r.IntN(len(schemes))], 3+r.IntN(5), 1+r.IntN(10), 1+r.IntN(6), 1+r.IntN(4), psn)
	for i := range 3 + r.IntN(5) {
		from := 1 + r.IntN(4)
		to := 1 + (from+r.IntN(3))%4
		verb, size := verbs[r.IntN(len(verbs))], r.IntN(9000)
		if verb == "cmp-swap" || verb == "fetch-add" {
			size = 8
		}
		if verb == "fetch-add" {
			verb += ", add: 1"
		}
		fmt.Fprintf(&b, "  - {name: f%d, from: rnic%d, to: rnic%d, verb: %s, size: %dB, count: %d, window: %d, start: %dus",
			i, from, to, verb, size, 1+r.IntN(5), 1+r.IntN(4), r.IntN(20))
		if r.IntN(2) == 0 {
			fmt.Fprintf(&b, ", qp: q%d-%d", from, to)
		}
		if r.IntN(5) == 0 {
			b.WriteString(", fence: true")
		}
		b.WriteString("}\n")
	}
	b.WriteString("faults:\n  []\n")
	text := strings.TrimSuffix(b.String(), "  []\n")
	b.Reset()
	for i := range r.IntN(14) {
		port := fmt.Sprintf("rnic%d:1", 1+r.IntN(4))
		if r.IntN(4) == 0 {
			port = fmt.Sprintf("leaf%d:uplink%d", 1+r.IntN(2), 1+r.IntN(2))
		}
		what := fmt.Sprintf("psn_index=%d iteration=%d", 1+r.IntN(30), 1+r.IntN(3))
		switch r.IntN(8) {
		case 0:
			what = fmt.Sprintf("ack=%d", 1+r.IntN(5))
		case 1:
			what = "nak=1"
		case 2:
			what = "rnr=1"
		case 3:
			what = "kind=" + []string{"data", "ack", "nak"}[r.IntN(3)]
		}
		kind, count := "drop", 1+r.IntN(3)
		if mean {
			kind = kinds[r.IntN(len(kinds))]
		}
		switch kind {
		case "delay":
			what += fmt.Sprintf(" by=%dus", 1+r.IntN(3000))
		case "corrupt":
			what += " field=" + []string{"icrc", "fcs", "bth.psn", "ip.id"}[r.IntN(4)]
		}
		fmt.Fprintf(&b, "  - %s %s name=d%d dir=out %s count=%d\n", kind, port, i, what, count)
	}
	if b.Len() == 0 {
		return strings.TrimSuffix(text, "faults:\n")
	}
	return text + b.String()
}

// TestRandomLosses is the property of the transport: for any finite loss
// pattern on any mix of verbs, every request ends in success or one error, in
// bounded virtual time; frames are conserved and content is right (both make
// the verdict failed otherwise); counters agree.
func TestRandomLosses(t *testing.T) {
	n := uint64(1000)
	if testing.Short() || raceEnabled {
		n = 100 // the first requests that fail are in seed 95
	}
	var lost, dead, recovered int
	for seed := uint64(1); seed <= n; seed++ {
		text := random(seed, false)
		o := run(t, text)
		where := func(format string, a ...any) {
			t.Errorf("seed %d: %s\n%s", seed, fmt.Sprintf(format, a...), text)
		}
		if o.Verdict != report.Complete {
			where("verdict %s: %s", o.Verdict, o.VerdictReason)
		}
		for name, f := range o.Flows {
			if f.Completed+f.Failed != f.Requests {
				where("%s: %d completed and %d failed of %d: %s", name, f.Completed, f.Failed, f.Requests, f.Why)
			}
			sum := int64(0)
			for _, k := range f.Statuses {
				sum += k
			}
			if sum != f.Requests {
				where("%s: statuses %v of %d", name, f.Statuses, f.Requests)
			}
			if f.Retransmitted > 0 && f.Failed == 0 {
				recovered++
			}
			dead += int(f.Failed)
		}
		lost += int(o.Totals.DroppedFrames)
		relations(o, where)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d seeds: %d frames lost, %d flows recovered, %d requests failed", n, lost, recovered, dead)
	if lost == 0 || recovered == 0 || dead == 0 {
		t.Error("the patterns are too tame: nothing lost, recovered or failed")
	}
}

// TestRandomDisorder adds what networks do besides losing: frames that come
// twice, late, swapped or damaged. The property is the same, and nothing is
// executed twice: every atomic adds once.
func TestRandomDisorder(t *testing.T) {
	n := uint64(500)
	if testing.Short() || raceEnabled {
		n = 60
	}
	for seed := uint64(1); seed <= n; seed++ {
		text := random(seed, true)
		plan := load(t, text)
		o := execute(t, plan)
		if o.Verdict != report.Complete {
			t.Fatalf("seed %d: verdict %s: %s\n%s", seed, o.Verdict, o.VerdictReason, text)
		}
		for i := range plan.Lines {
			name := plan.Lines[i].Name
			f := o.Flows[name]
			if f.Completed+f.Failed != f.Requests {
				t.Fatalf("seed %d: %s: %d completed and %d failed of %d: %s\n%s", seed, name, f.Completed, f.Failed, f.Requests, f.Why, text)
			}
			if f.Verb == "fetch-add" && f.Failed == 0 && f.Atomic.Memory != uint64(f.Requests) {
				t.Fatalf("seed %d: %s: %d fetch-adds of 1 left %d\n%s", seed, name, f.Requests, f.Atomic.Memory, text)
			}
		}
	}
}

// relations asserts what counters of real NICs satisfy (transport §6).
func relations(o *outcome, where func(string, ...any)) {
	died, reads := false, false
	for _, f := range o.Flows {
		died = died || f.Failed > 0
		reads = reads || f.Verb == "read" || f.Verb == "cmp-swap" || f.Verb == "fetch-add"
	}
	var oos, sent, seq, lostNaks, ignored uint64
	for k := uint32(1); k <= uint32(len(o.plan.RNICs)); k++ {
		c := o.RNICs[o.plan.RNIC(k).Name]
		oos, seq = oos+c.OutOfSequence, seq+c.PacketSeqErr
		for _, r := range o.of(k, record.NakSent) {
			if r.Reason == 0x60 {
				sent++
			}
		}
		ignored += uint64(len(o.of(k, record.Ignored)))
	}
	for _, r := range o.rec {
		if r.Kind == record.Drop && r.Op == 0x11 {
			lostNaks++ // at most: an ACK may have been it
		}
	}
	if oos != sent {
		where("out_of_sequence %d, sequence NAKs sent %d", oos, sent)
	}
	// A NAK beyond an unanswered READ is an implied NAK, and is passed over while
	// a restarted READ is awaited: with READs about, fewer count as sequence NAKs.
	if seq > sent || !died && !reads && seq+lostNaks+ignored < sent {
		where("%d NAKs sent, packet_seq_err %d; %d acknowledgements lost, %d ignored", sent, seq, lostNaks, ignored)
	}
}

// TestReadRelation holds duplicate_request = gaps + timeouts of READs whose
// responses are lost, one at a time outstanding.
func TestReadRelation(t *testing.T) {
	for seed := uint64(1); seed <= 100; seed++ {
		r := rand.New(rand.NewPCG(seed, 9))
		text := pair + fmt.Sprintf("rnics: {all: {mtu: 256, qp: {timeout: 8}}}\nworkload: [{name: r, from: rnic1, to: rnic2, verb: read, size: %dB, count: 4}]\nfaults:\n", 1+r.IntN(6000))
		for i := range 1 + r.IntN(6) {
			text += fmt.Sprintf("  - drop rnic2:1 name=d%d dir=out psn_index=%d iteration=%d count=1\n", i, 1+r.IntN(40), 1+r.IntN(2))
		}
		o := run(t, text)
		a, b := o.RNICs["rnic1"], o.RNICs["rnic2"]
		if o.Flows["r"].Completed != 4 || b.DuplicateRequest != a.ImpliedNakSeqErr+a.LocalAckTimeoutErr {
			t.Fatalf("seed %d: %d completed, duplicate_request %d, implied_nak_seq_err %d + local_ack_timeout_err %d\n%s", seed,
				o.Flows["r"].Completed, b.DuplicateRequest, a.ImpliedNakSeqErr, a.LocalAckTimeoutErr, text)
		}
		if b.RxReadRequests != 4+b.DuplicateRequest {
			t.Fatalf("seed %d: rx_read_requests %d", seed, b.RxReadRequests)
		}
	}
}

// TestCNPRelation holds that CE data packets, CNPs sent and CNPs handled agree
// on a congested and lossless fabric.
func TestCNPRelation(t *testing.T) {
	o := run(t, `schema: 1
name: cnp
topology: {spines: 0, leaves: 1, servers: 5}
switches: {all: {ecn: {kmin: 20KB, kmax: 80KB, pmax: 0.5}}}
workload: [{name: burst, pattern: incast, from: [rnic1, rnic2, rnic3, rnic4], to: rnic5, verb: write, size: 2MB}]
`)
	var sent, marked, handled, ignored uint64
	for _, c := range o.RNICs {
		sent, marked, handled, ignored = sent+c.NPCNPSent, marked+c.NPECNMarked, handled+c.RPCNPHandled, ignored+c.RPCNPIgnored
	}
	if sent == 0 || sent != handled || ignored != 0 || marked != o.Totals.ECNMarked || sent != o.Totals.CNPs || sent > marked {
		t.Errorf("CE %d (switches %d), CNPs sent %d, handled %d, ignored %d", marked, o.Totals.ECNMarked, sent, handled, ignored)
	}
	if got := clock.Time(o.VirtualNS); got <= 0 {
		t.Errorf("virtual time %v", got)
	}
}
