// Package fuzzfabric runs fabrics drawn from seeds: random topologies, switch
// and RNIC settings, traffic and faults. Whatever they are, the result must not
// depend on workers, windows or a save and restore, no frame may vanish, and the
// run must end with a verdict that is not "failed".
package fuzzfabric

import (
	"fmt"
	"strings"

	"github.com/rocemu/rocemu/clock"
)

// gen draws one fabric file; equal seeds give equal text.
type gen struct {
	b     strings.Builder
	seed  uint64
	n     uint64
	rnics int
	gone  bool     // frames may be lost by design
	cable []string // names of switch ends of cables
	devs  []string // switches
}

// rnd draws 0..n-1.
func (g *gen) rnd(n int) int {
	g.n++
	return int(clock.Mix(g.seed, g.n, 0xfab) % uint64(n))
}

func (g *gen) chance(percent int) bool { return g.rnd(100) < percent }

func (g *gen) pick(of ...string) string { return of[g.rnd(len(of))] }

func (g *gen) f(format string, a ...any) { fmt.Fprintf(&g.b, format, a...) }

// fabric writes the whole file and tells whether data frames may be lost.
func fabric(seed uint64) (text string, lossy bool) {
	g := &gen{seed: seed}
	g.f("schema: 1\nname: f%d\nseed: %d\n", seed, g.rnd(1000))
	g.f("run: {until: %s, limit: %s, stall: %s, warmup: %s}\n", g.pick("idle", "idle", "idle", "idle", "idle", "700us"), g.pick("40ms", "200ms", "2s"), g.pick("1s", "30ms"), g.pick("0us", "0us", "10us"))
	if g.chance(75) {
		g.generated()
	} else {
		g.byHand()
	}
	g.switches()
	g.nics()
	g.workload()
	g.faults()
	g.changes()
	return g.b.String(), g.gone
}

func (g *gen) rate() string {
	return g.pick("1Gbps", "10Gbps", "25Gbps", "25Gbps", "40Gbps", "100Gbps", "100Gbps", "400Gbps", "37Gbps", "3333333333bps", "800Gbps")
}

func (g *gen) reach() string {
	return g.pick("length: 1m", "length: 3m", "length: 3m", "length: 30m", "length: 100m", "length: 300m", "delay: 500ns", "delay: 1234567ps", "length: 10km")
}

func (g *gen) generated() {
	spines, leaves, servers := g.rnd(4), 1+g.rnd(4), 1+g.rnd(5)
	if g.chance(15) {
		servers += 6
	}
	if spines == 0 {
		leaves, servers = 1, max(servers, 2)
	}
	pods, cores := 1, 0
	if spines > 0 && g.chance(15) {
		pods, cores = 2, 1+g.rnd(2)
		leaves = min(leaves, 2)
	}
	ports := 1
	if g.chance(10) {
		ports = 2
	}
	if leaves*servers*pods < 2 {
		servers = 2
	}
	g.rnics = pods * leaves * servers
	g.f("topology:\n  pods: %d\n  spines: %d\n  leaves: %d\n  servers: %d\n  cores: %d\n  ports: %d\n", pods, spines, leaves, servers, cores, ports)
	if pods > 1 {
		g.f("  cross_pod_rdma: lossy\n")
		g.gone = true
	}
	g.f("  links:\n    server: {rate: %s, %s}\n    uplink: {rate: %s, %s, per_pair: %d}\n", g.rate(), g.reach(), g.rate(), g.reach(), 1+g.rnd(2))
	for p := 1; p <= pods; p++ {
		pre := ""
		if pods > 1 {
			pre = fmt.Sprintf("pod%d-", p)
		}
		for l := 1; l <= leaves; l++ {
			leaf := fmt.Sprintf("%sleaf%d", pre, l)
			g.devs = append(g.devs, leaf)
			g.cable = append(g.cable, leaf+":1")
			if spines > 0 {
				g.cable = append(g.cable, leaf+":uplink1", fmt.Sprintf("%s:uplink%d", leaf, spines))
			}
		}
		for s := 1; s <= spines; s++ {
			spine := fmt.Sprintf("%sspine%d", pre, s)
			g.devs = append(g.devs, spine)
			g.cable = append(g.cable, spine+":1")
		}
	}
}

// byHand makes a connected graph of switches, often with cycles; now and then
// static routes send traffic the long way round a ring.
func (g *gen) byHand() {
	n := 1 + g.rnd(5)
	g.rnics = 2 + g.rnd(6)
	next := make([]int, n)
	g.f("topology:\n  spines: 0\n  leaves: 0\n  servers: 0\n  nodes:\n")
	for i := range n {
		g.f("    - {name: s%d, kind: %s}\n", i, g.pick("leaf", "leaf", "spine"))
		g.devs = append(g.devs, fmt.Sprintf("s%d", i))
	}
	for k := range g.rnics {
		g.f("    - {name: rnic%d, kind: rnic}\n", k+1)
	}
	g.f("  cables:\n")
	port := func(i int) string { next[i]++; return fmt.Sprintf("s%d:%d", i, next[i]) }
	link := func(a, b int) {
		pa, pb := port(a), port(b)
		g.cable = append(g.cable, pa)
		g.f("    - {ends: [\"%s\", \"%s\"], rate: %s, %s}\n", pa, pb, g.rate(), g.reach())
	}
	for k := range g.rnics {
		at := port(g.rnd(n))
		g.cable = append(g.cable, at)
		g.f("    - {ends: [\"rnic%d:1\", \"%s\"], rate: %s, %s}\n", k+1, at, g.rate(), g.reach())
	}
	for i := 1; i < n; i++ {
		link(i, g.rnd(i))
	}
	for range g.rnd(4) {
		if a, b := g.rnd(n), g.rnd(n); a != b {
			link(a, b)
		}
	}
}

func (g *gen) switches() {
	g.f("switches:\n  all:\n    mode: %s\n    latency: %s\n", g.pick("store-and-forward", "cut-through"), g.pick("1us", "1us", "300ns", "600ns", "2us", "0ns"))
	pool := g.pick("none", "none", "none", "200KB")
	g.gone = g.gone || pool != "none"
	g.f("    buffer: {size: %s, cell: %s, headroom_pool: %s}\n", g.pick("12MiB", "12MiB", "3MB", "1MB", "400KB"), g.pick("208B", "256B", "144B", "80B"), pool)
	if g.chance(20) {
		g.f("    ecmp: {hash: %s, spray: %s}\n", g.pick("murmur3", "crc32"), g.pick("none", "packet"))
	}
	if g.chance(20) {
		g.f("    lossy: {alpha: %s}\n", g.pick("8", "1", "1/16", "1/256"))
	}
	g.pfc()
	if g.chance(40) {
		g.f("    ecn: {kmin: %s, kmax: %s, pmax: %s, point: %s}\n", g.pick("2KB", "5KB", "50KB"), g.pick("50KB", "200KB", "50KB"), g.pick("0.1", "1", "0", "1/3"), g.pick("dequeue", "enqueue"))
	}
	if g.chance(15) {
		g.gone = true
		g.f("    mtu: %s\n", g.pick("1500B", "1106B", "4200B", "700B"))
	}
	if g.chance(20) {
		g.f("    qos: {scheduler: {3: %s, 0: %s, 6: strict}}\n", g.pick("strict", "{weight: 50}", "{weight: 1}"), g.pick("{weight: 50}", "{weight: 7}"))
	}
}

func (g *gen) pfc() {
	prios, headroom := g.pick("[3]", "[3]", "[3]", "[3]", "[]", "[3, 6]", "[0, 3]"), g.pick("auto", "auto", "auto", "auto", "0B", "4KB")
	quanta := g.pick("65535", "65535", "65535", "1000", "64", "8", "1")
	if strings.Contains(prios, "[]") || headroom != "auto" || len(quanta) < 4 {
		g.gone = true
	}
	g.f("    pfc: {priorities: %s, alpha: %s, headroom: %s, xon_offset: %s, quanta: %s, guaranteed: %s, response: %s", prios,
		g.pick("1/8", "1/8", "1", "1/64", "1/256", "8", "256"), headroom, g.pick("18KB", "0B", "1KB", "1MB"), quanta,
		g.pick("0B", "0B", "2KB"), g.pick("1us", "1us", "1000001ps", "2us", "5us"))
	if g.chance(10) {
		g.gone = true
		g.f(", watchdog: {detect: %s, restore: 100ms, poll: 100ms, action: %s}", g.pick("100ms", "200ms"), g.pick("drop", "forward"))
	}
	g.f("}\n")
}

func (g *gen) nics() {
	g.f("rnics:\n  all:\n    mtu: %s\n    recovery: %s\n    congestion: %s\n    ack: %s\n", g.pick("256", "1024", "1024", "4096"),
		g.pick("go-back-n", "go-back-n", "selective-repeat", "go-back-0"), g.pick("dcqcn", "none", "none", "swift"), g.pick("last", "last", "every"))
	if g.chance(30) {
		g.f("    model: %s\n", g.pick("cx4", "cx5", "cx6dx", "e810", "rxe", "article"))
	}
	if g.chance(15) {
		g.f("    rx_buffer: %s\n    latency: %s\n", g.pick("256KiB", "1MiB", "4MiB"), g.pick("0ns", "600ns", "1us"))
	}
	if g.chance(10) {
		g.f("    dscp: %s\n", g.pick("0", "48", "5"))
		g.gone = true
	}
	g.f("    qp: {timeout: %d, retry_cnt: %d, rnr_retry: %d, min_rnr_timer: %d, initial_psn: %s, max_rd_atomic: %s", 3+g.rnd(8), g.rnd(8), g.rnd(8), 1+g.rnd(12), g.pick("0", "16777200", "8388600", "77"), g.pick("16", "1", "2"))
	if g.chance(20) {
		g.f(", recv_queue: %s, recv_repost: %s, recv_batch: %s", g.pick("1", "3", "512"), g.pick("0us", "7us", "300us"), g.pick("1", "2"))
	}
	if g.chance(10) {
		g.f(", timeout_window: t-4t")
	}
	if g.chance(10) {
		g.f(", rnr_early: %s, partial_read: %s, implied_nak: %s, credits: %s", g.pick("drop", "renak", "execute"), g.pick("true", "false"), g.pick("true", "false"), g.pick("true", "false"))
	}
	g.f("}\n")
}

func (g *gen) rnic() string { return fmt.Sprintf("rnic%d", 1+g.rnd(g.rnics)) }

func (g *gen) two() (string, string) {
	a := g.rnd(g.rnics)
	b := (a + 1 + g.rnd(g.rnics-1)) % g.rnics
	return fmt.Sprintf("rnic%d", a+1), fmt.Sprintf("rnic%d", b+1)
}

func (g *gen) size() string {
	return g.pick("0B", "1B", "100B", "4096B", "4097B", "30000B", "60KB", "200KB", "65536B", "1024B", "1025B")
}

func (g *gen) verb() string {
	return g.pick("send", "send-imm", "send-inv", "write", "write", "write", "write-imm", "read", "read")
}

func (g *gen) workload() {
	g.f("workload:\n")
	for i := range 1 + g.rnd(4) {
		g.line(i)
	}
}

func (g *gen) line(i int) {
	a, b := g.two()
	start := g.pick("0us", "0us", "0us", "3us", "20us", "100us")
	switch g.rnd(12) {
	case 0, 1:
		g.f("  - {name: w%d, pattern: permutation, shift: 1, verb: %s, size: %s, count: %d, start: %s}\n", i, g.verb(), g.size(), 1+g.rnd(3), start)
	case 2, 3:
		g.f("  - {name: w%d, pattern: incast, from: all, to: %s, verb: %s, size: %s, start: %s}\n", i, b, g.verb(), g.size(), start)
	case 4:
		g.f("  - {name: w%d, pattern: all-to-all, verb: %s, size: %s}\n", i, g.verb(), g.pick("1B", "5000B", "9KB"))
	case 5:
		g.f("  - {name: w%d, pattern: ring-allreduce, verb: %s, size: %s, count: %d}\n", i, g.pick("write", "send", "write-imm"), g.pick("4KB", "100KB", "1B"), 1+g.rnd(2))
	case 6:
		g.gone = true
		g.f("  - {name: w%d, from: %s, to: %s, transport: udp, rate: %s, size: %s, packet: %s, dscp: %s}\n", i, a, b, g.pick("1Gbps", "40Gbps", "400Gbps"), g.size(), g.pick("1472B", "18B", "8000B"), g.pick("0", "26", "48"))
	case 7:
		g.f("  - {name: w%d, from: %s, to: %s, verb: %s, count: %d, window: %d, add: 3, compare: 0, swap: 9}\n", i, a, b, g.pick("fetch-add", "cmp-swap"), 1+g.rnd(20), 1+g.rnd(20))
	case 8:
		g.f("  - {name: w%d, pattern: pingmesh, count: %d, interval: %s}\n", i, 1+g.rnd(3), g.pick("10us", "100us"))
	case 9:
		g.gone = true
		g.f("  - {name: w%d, from: %s, to: %s, transport: tcp, size: %s, start: %s, congestion: %s}\n", i, a, b, g.pick("1B", "100KB", "300KB"), start, g.pick("cubic", "dctcp"))
	default:
		g.f("  - {name: w%d, from: %s, to: %s, verb: %s, size: %s, count: %d, window: %d, qps: %d, start: %s", i, a, b, g.verb(), g.size(), 1+g.rnd(6), 1+g.rnd(4), 1+g.rnd(3), start)
		switch g.rnd(8) {
		case 0:
			g.f(", rate: %s", g.pick("1Gbps", "7Gbps"))
		case 1:
			g.f(", interval: 20us")
		case 2:
			g.f(", unsignalled: true, fence: true")
		case 3:
			g.f(", rkey: %s", g.pick("bad", "read-only"))
		}
		g.f("}\n")
	}
}

func (g *gen) faults() {
	if g.chance(45) {
		return
	}
	g.f("faults:\n")
	for i := range 1 + g.rnd(3) {
		g.fault(i)
	}
}

// changes sets up to three settings for a while, often overlapping.
func (g *gen) changes() {
	if g.chance(75) {
		return
	}
	g.gone = true
	g.f("changes:\n")
	for i := range 1 + g.rnd(3) {
		set := g.pick("switches.all.pfc.alpha, to: 1/64", "switches.all.pfc.alpha, to: 8", "switches.all.pfc.xoff, to: 20KB", "switches.leaf.pfc.headroom, to: 2KB",
			"switches.all.buffer.size, to: 20MB", "switches.all.pfc.quanta, to: 500", "switches.all.ecn.kmin, to: 3KB", "switches.all.ecmp.seed, to: 7", "switches.all.mtu, to: 1500B",
			"switches.all.lossy.alpha, to: 1/64", "rnics.all.rx_buffer, to: 200KB", "rnics.all.qp.timeout, to: 5", "rnics.all.qp.retry_cnt, to: 1", "rnics.all.ack, to: every",
			"rnics.all.dcqcn.rpg_ai_rate, to: 200Mbps", "rnics.all.qp.min_rnr_timer, to: 3", "rnics.devices.rnic2.qp.timeout, to: 4", "switches.all.qos.scheduler, to: {3: strict}")
		g.f("  - {name: c%d, set: %s, at: %s, for: %s}\n", i, set, g.pick("0us", "3us", "17us", "60us", "300us"), g.pick("2us", "40us", "1ms"))
	}
}

func (g *gen) fault(i int) {
	g.gone = true
	at, long := g.pick("0us", "5us", "12345ns", "40us", "200us"), g.pick("1us", "10us", "50us", "500us", "3ms")
	cable, dev, nic := g.cable[g.rnd(len(g.cable))], g.devs[g.rnd(len(g.devs))], g.rnic()
	head := func(kind, target string) {
		g.f("  - {name: x%d, kind: %s, target: \"%s\", at: %s, for: %s", i, kind, target, at, long)
	}
	switch g.rnd(14) {
	case 0:
		head("link-down", cable)
		g.f(", hold: %s}\n", g.pick("0us", "5us"))
	case 1:
		head("link-flap", cable)
		g.f(", period: %s, duty: %s}\n", g.pick("5us", "20us"), g.pick("0.5", "0.1", "1/3"))
	case 2:
		head(g.pick("one-way", "link-down"), cable)
		g.f("}\n")
	case 3:
		head(g.pick("device-down", "drain"), g.pick(dev, nic))
		g.f("}\n")
	case 4:
		head("loss", cable)
		g.f(", probability: %s}\n", g.pick("0.01", "0.1", "0.5", "1"))
	case 5:
		head("ber", cable)
		g.f(", to: %s}\n", g.pick("1e-6", "1e-5", "1e-4", "1"))
	case 6:
		head("rate", cable)
		g.f(", to: %s}\n", g.rate())
	case 7:
		head(g.pick("drop", "duplicate", "reorder", "mark-ce", "delay, by: 3us", "delay, by: 200us", "corrupt, field: icrc", "corrupt, field: fcs", "corrupt, field: bth.psn", "corrupt, field: ip.tos"), g.pick(cable, nic+":1"))
		g.f(", match: {dir: %s, kind: %s}, probability: %s}\n", g.pick("in", "out"), g.pick("data", "ack", "nak", "cnp"), g.pick("0.05", "0.3", "1"))
	case 8:
		head(g.pick("pause-storm", "pfc-off", "ecn-off"), g.pick(cable, nic+":1"))
		g.f("}\n")
	case 9:
		head("slow-receiver", nic)
		g.f(", drain: %s}\n", g.pick("1Gbps", "5Gbps", "100Mbps"))
	case 10:
		head(g.pick("rq-empty", "rq-pause", "mr-not-ready", "no-resource", "rx-overflow", "pcie-stall", "early-rnr", "qp-error"), nic)
		g.f("}\n")
	case 11:
		head("buffer", dev)
		g.f(", size: %s}\n", g.pick("300KB", "1MB", "20MB"))
	case 12:
		head("dscp", g.pick(dev, nic))
		g.f(", to: %s}\n", g.pick("0", "26", "48"))
	case 13:
		head("mtu", cable)
		g.f(", size: %s}\n", g.pick("600B", "1500B"))
	}
}
