package topology

import (
	"strings"
	"testing"
)

const agreeing = `schema: 1
topology: {spines: 1, leaves: 2, servers: 2}
switches:
  all: {latency: 1us, pfc: {headroom: 50KB}, buffer: {size: 16MiB}}
rnics:
  all: {qp: {timeout: 14}}
workload:
  - {name: a, from: rnic1, to: rnic4, verb: write, size: 10KB}
  - {name: b, from: rnic1, to: rnic4, verb: read, size: 10KB, qp: shared}
faults:
  - {name: cut, kind: pfc-off, target: leaf1, for: 1ms}
`

// TestContradictionsTellBothOrigins: an error about two settings stands at the
// one that was given last, and says where the other one is from: a file's line,
// a --set, a default, a profile.
func TestContradictionsTellBothOrigins(t *testing.T) {
	load(t, agreeing)
	for _, c := range []struct {
		sets []string
		want string
	}{
		{[]string{"switches.all.latency=10us"}, `--set switches.all.latency:1:22: switches.all.latency: value "10us": pfc.response must be at least half the pipeline latency of leaf1 (5us): it includes the egress half (pfc.response 1us is the default)`},
		{[]string{"switches.all.pfc.response=100ns"}, `--set switches.all.pfc.response:1:27: switches.all.pfc.response: value "100ns": pfc.response must be at least half the pipeline latency of leaf1 (500ns): it includes the egress half (switches.all.latency 1us at f.yaml:4:18)`},
		{[]string{"switches.all.pfc.headroom=9MB"}, `--set switches.all.pfc.headroom:1:27: switches.all.pfc.headroom: value "9MB": spine1: headroom + reserved`},
		{[]string{"switches.all.pfc.headroom=9MB"}, `(switches.all.buffer.size 16MiB at f.yaml:4:61)`},
		{[]string{"switches.all.buffer.size=64KB"}, `--set switches.all.buffer.size:1:26: switches.all.buffer.size: value "64KB": spine1: headroom + reserved`},
		{[]string{"switches.all.buffer.size=64KB"}, `(switches.all.pfc.headroom 50KB at f.yaml:4:39); did you mean "`},
		{[]string{"switches.all.buffer.headroom_pool=17MiB"}, `headroom pool 17825792 > buffer 16777216 (switches.all.buffer.size 16MiB at f.yaml:4:61)`},
		{[]string{"switches.all.buffer.size=64B", "switches.all.buffer.cell=100B"}, `--set switches.all.buffer.cell:2:26: switches.all.buffer.cell: value "100B": the buffer must hold at least one cell a slice (switches.all.buffer.size 64B at --set switches.all.buffer.size:1:26; `},
		{[]string{"switches.all.pfc.watchdog.detect=150ms"}, `--set switches.all.pfc.watchdog.detect:1:34: switches.all.pfc.watchdog.detect: value "150ms": poll must not be above detect and restore (switches.pfc.watchdog.poll 200ms is the default; switches.pfc.watchdog.restore 200ms is the default)`},
		{[]string{"rnics.devices.rnic4.mtu=4096"}, `f.yaml:8:5: workload.a: value "1024": path MTU 1024 at rnic1 and 4096 at rnic4: both ends of a QP need the same rnics mtu (mtu of rnic1 1024 is the default; rnics.devices.rnic4.mtu 4096 at --set rnics.devices.rnic4.mtu:1:25)`},
		{[]string{"rnics.devices.rnic4.qp.connect=cm"}, `connect: cm at rnic4 but preset at rnic1; both ends of a QP need the same (qp.connect of rnic1 preset is the default; rnics.devices.rnic4.qp.connect cm at --set`},
		{[]string{"rnics.all.qp.connect=cm", "rnics.devices.rnic4.qp.max_dest_rd_atomic=0"}, `(qp.max_rd_atomic of rnic1 16 is the default; rnics.devices.rnic4.qp.max_dest_rd_atomic 0 at --set rnics.devices.rnic4.qp.max_dest_rd_atomic:2:43)`},
		{[]string{"rnics.all.personality.timeout_max=10"}, `--set rnics.all.personality.timeout_max:1:35: rnics.all.personality.timeout_max: value "10": this model takes a timeout of 0..10 (rnics.all.qp.timeout 14 at f.yaml:6:23; model generic is the default)`},
		{[]string{"rnics.all.personality.timeout_rule=hip08", "rnics.all.qp.timeout=21"}, `--set rnics.all.qp.timeout:2:22: rnics.all.qp.timeout: value "21": timeout_rule hip08 takes a timeout of 0..20 (rnics.all.personality.timeout_rule hip08 at --set rnics.all.personality.timeout_rule:1:36; `},
		{[]string{"rnics.all.qp.alt_path.port=2"}, `--set rnics.all.qp.alt_path.port:1:28: rnics.all.qp.alt_path.port: value "2": rnic1 has no such port; topology.ports: 2 gives every RNIC two (topology.ports 1 is the default)`},
		{[]string{"rnics.all.tcp.rto_max=1ms"}, `--set rnics.all.tcp.rto_max:1:23: rnics.all.tcp.rto_max: value "1ms": must not be below rto_min 200ms, the default`},
		{[]string{"rnics.all.tcp.window=1KB"}, `rnics.all.tcp.window: value "1KB": must not be below mtu 1500B, the default`},
		{[]string{"workload.a.transport=udp"}, `--set workload.a.transport:1:22: workload.a.transport: value "udp": a verb needs transport rdma (workload.a.verb write at f.yaml:8:45)`},
		{[]string{"workload.a.verb=cmp-swap"}, `--set workload.a.verb:1:17: workload.a.verb: value "cmp-swap": an atomic is 8 bytes (workload.a.size 10KB at f.yaml:8:58)`},
		{[]string{"workload.a.shift=2"}, `--set workload.a.shift:1:18: workload.a.shift: value "2": shift belongs to pattern permutation (pattern is not given)`},
		{[]string{"workload.a.congestion=cubic"}, `value "cubic": congestion belongs to transport tcp; RDMA's is rnics.congestion (transport is not given)`},
		{[]string{"workload.b.qps=2"}, `--set workload.b.qps:1:16: workload.b.qps: value "2": a shared QP needs a single rdma flow: no pattern and no qps (workload.b.qp shared at f.yaml:9:67; pattern is not given)`},
		{[]string{"workload.a.from=[rnic1, rnic2]"}, `--set workload.a.from:1:17: workload.a.from: value "rnic1,rnic2": several RNICs in from or to need a pattern, such as incast (workload.a.to rnic4 at f.yaml:8:32)`},
		{[]string{"workload.a.qp=shared", "workload.a.from=rnic2"}, `line "a" uses this QP from rnic2 to rnic4; all lines of a QP run the same way (f.yaml:8:5)`},
		{[]string{"topology.spines=0"}, `--set topology.spines:1:17: topology.spines: value "0": more than one leaf needs at least one spine per POD, or cables by hand (topology.leaves 2 at f.yaml:2:31)`},
		{[]string{"topology.servers=4000", "topology.leaves=4000"}, `must be at most`},
		{[]string{"topology.pods=2", "topology.cores=2", "workload.a.to=rnic8", "workload.b.to=rnic8"}, `set topology.cross_pod_rdma: lossy to run it anyway (cross_pod_rdma refuse is the default; topology.pods 2 at --set topology.pods:1:15)`},
		{[]string{"faults.cut.count=3"}, `--set faults.cut.count:1:18: faults.cut.count: value "3": give for or count, not both (faults.cut.for 1ms at f.yaml:11:52)`},
		{[]string{"faults.cut.kind=rq-empty"}, `f.yaml:11:40: faults.cut.target: value "leaf1": rq-empty needs an RNIC (faults.cut.kind rq-empty at --set faults.cut.kind:1:17)`},
		{[]string{"topology.links={server: {length: 3m, delay: 15ns}}"}, `give length or delay, not both (length at --set topology.links:1:16)`},
	} {
		_, _, err := ParseBytes("f.yaml", []byte(agreeing), c.sets...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v:\n got %v\nwant %s", c.sets, err, c.want)
		}
	}
}

// TestContradictionWithAProfile: a value that a model brings is told as such.
func TestContradictionWithAProfile(t *testing.T) {
	r := &resolver{root: &node{kind: nMap}}
	e := nicTable().keys[len(nicTable().keys)-1].val.get("layer").keys[0]
	for e.val.kind == nMap {
		e = e.val.keys[0]
	}
	if got := r.origins(said{key: e.key, text: text(e.val), n: e.val}); got != " ("+e.key+" "+text(e.val)+" is the profile's)" {
		t.Error(got)
	}
}
