package topology

import (
	"sort"
	"strings"
	"sync"
)

// The keys of a fabric file as data. One table drives the strict check, the
// nearest-name suggestions and the JSON Schema that editors use, so they cannot
// disagree.

type valueKind uint8

const (
	kAny valueKind = iota
	kMap
	kSeq
	kRate
	kLength
	kDuration
	kSize
	kInt
	kBool
	kWord // one of words
	kText
	kAlpha
	kProb
	kExpr // text of any length
)

// spec says what may stand at one place of the file.
type spec struct {
	kind     valueKind
	doc      string
	keys     []keySpec // kMap: named keys
	index    *spec     // kMap: keys that are numbers
	lo, hi   int64     // bounds of a number, or of index keys
	among    choice    // kInt: the only numbers within the bounds, if not all
	other    *spec     // kMap: any other key
	item     *spec     // kSeq
	words    []string  // kWord: the words; else words allowed instead of the value
	exclude  [][2]string
	orScalar *spec // kSeq or kMap: a scalar of this kind is accepted too
	orSeq    *spec // scalar kinds: a sequence is accepted too

	narrow func(n *node) []string // kMap: the keys that this mapping takes, nil = all of them
}

type keySpec struct {
	name string
	spec *spec
}

func (s *spec) find(key string) *spec {
	for i := range s.keys {
		if s.keys[i].name == key {
			return s.keys[i].spec
		}
	}
	return nil
}

func (s *spec) names() []string {
	out := make([]string, len(s.keys))
	for i, k := range s.keys {
		out[i] = k.name
	}
	return out
}

func (s *spec) with(words ...string) *spec {
	c := *s
	c.words = append(append([]string(nil), s.words...), words...)
	return &c
}

func (s *spec) says(doc string) *spec { c := *s; c.doc = doc; return &c }

func mapOf(keys ...keySpec) *spec { return &spec{kind: kMap, keys: keys} }
func seqOf(item *spec) *spec      { return &spec{kind: kSeq, item: item} }
func intOf(lo, hi int64) *spec    { return &spec{kind: kInt, lo: lo, hi: hi} }
func wordOf(words ...string) *spec {
	return &spec{kind: kWord, words: words}
}
func key(name string, s *spec, doc string) keySpec { return keySpec{name, s.says(doc)} }

var (
	sRate     = &spec{kind: kRate}
	sLength   = &spec{kind: kLength}
	sDuration = &spec{kind: kDuration}
	sSize     = &spec{kind: kSize}
	sBool     = &spec{kind: kBool}
	sText     = &spec{kind: kText}
	sAlpha    = &spec{kind: kAlpha}
	sProb     = &spec{kind: kProb}
	sAny      = &spec{kind: kAny}
	sExpr     = &spec{kind: kExpr}
	sNames    = &spec{kind: kSeq, item: sText, orScalar: sText}
	sPrios    = &spec{kind: kSeq, item: intOf(0, 7)}
	sUint     = intOf(0, 1<<63-1)
)

var fileSpec = sync.OnceValue(func() *spec {
	return mapOf(
		key("schema", intOf(1, 1), "version of this format"),
		key("name", sText, "name of the fabric"),
		key("seed", sUint, "same file and seed give the same digest; default 1"),
		key("run", runSpec(), "when a run ends"),
		key("topology", topologySpec(), "devices and cables"),
		key("switches", switchesSpec(), "settings: all, then role, then device"),
		key("rnics", rnicsSpec(), "settings: all, then device"),
		key("workload", seqOf(workSpec()), "traffic"),
		key("faults", seqOf(faultSpec()), "planned faults, as mapping or text"),
		key("changes", seqOf(changeSpec()), "planned changes of settings, as mapping or text PATH=VALUE"),
		key("capture", seqOf(mapOf(key("port", sText, "device:port"), key("file", sText, "pcapng file"))), "captures"),
		key("telemetry", mapOf(
			key("otlp", sText, "host:port of an OTLP collector"),
			key("interval", sDuration, "virtual time between samples"),
			key("scale", intOf(1, 1e9), "exported time = epoch + scale × virtual")), "export"),
		key("expect", seqOf(sExpr), "CEL expressions over the result"),
	)
})

func runSpec() *spec {
	return mapOf(
		key("until", sDuration.with("idle", "stopped"), "idle, stopped, or a virtual duration"),
		key("limit", sDuration, "virtual; reached before until = verdict limit; default 60s"),
		key("stall", sDuration, "no progress for this long = stalled"),
		key("window", sDuration.with("auto"), "synchronisation window, not above auto"),
		key("warmup", sDuration, "requests that start earlier stay out of percentiles"),
		key("workers", intOf(0, 1024), "0 = automatic"),
		key("memory", sSize, "a run that needs more is refused; one that grows beyond is stopped; what runs at once in a process (a sweep) may take the sum"),
	)
}

func linkSpec() *spec {
	s := mapOf(
		key("rate", sRate, "line rate"),
		key("length", sLength, "5 ns/m"),
		key("delay", sDuration, "one way, instead of length"),
		key("ber", sProb, "bit error rate"),
	)
	s.exclude = [][2]string{{"length", "delay"}}
	return s
}

func topologySpec() *spec {
	perPair := key("per_pair", intOf(1, 64), "parallel links of a pair; default 1")
	server, uplink, core := linkSpec(), linkSpec(), linkSpec()
	uplink.keys = append(uplink.keys, perPair)
	core.keys = append(core.keys, key("uplinks_per_spine", intOf(1, 64), "links of a spine to each core; default 1"))
	cable := linkSpec()
	cable.keys = append([]keySpec{key("ends", seqOf(sText), `two ends, such as ["h1:1", "tor:1"]`)}, cable.keys...)
	return mapOf(
		key("pods", intOf(0, 1024), "default 1"),
		key("spines", intOf(0, 4096), "per POD"),
		key("leaves", intOf(0, 4096), "per POD"),
		key("servers", intOf(0, 65000), "per leaf"),
		key("cores", intOf(0, 4096), "default 0"),
		key("links", mapOf(
			key("server", server, "RNIC to leaf"),
			key("uplink", uplink, "leaf to spine"),
			key("core", core, "spine to core")), "cables of the generated part"),
		key("cross_pod_rdma", wordOf("refuse", "lossy"), "RDMA between PODs"),
		key("ports", intOf(1, 2), "ports per RNIC"),
		key("nodes", seqOf(mapOf(
			key("name", sText, "name"),
			key("kind", wordOf("rnic", "leaf", "spine", "core"), "role"),
			key("pod", intOf(1, 1024), "POD, default 1"))), "devices by hand"),
		key("cables", seqOf(cable), "cables by hand"),
		key("routes", seqOf(mapOf(
			key("at", sText, "switch"),
			key("to", sText, "RNIC, or a switch for all its RNICs"),
			key("via", sNames, "own port or ports"),
			key("flood", sBool, "instead of via: the entry is incomplete, frames leave at every other port"))), "static routes, before ECMP"),
	)
}

func pgKeys() []keySpec {
	return []keySpec{
		key("alpha", sAlpha, "dynamic shared threshold"),
		key("xoff", sSize, "static shared threshold"),
		key("guaranteed", sSize, "private space"),
		key("xon_offset", sSize, "XON lies this far below XOFF"),
		key("headroom", sSize.with("auto"), "space for what is in flight after XOFF"),
	}
}

func pfcSpec() *spec {
	prio := mapOf(pgKeys()...)
	prio.exclude = [][2]string{{"alpha", "xoff"}}
	dog := mapOf(
		key("detect", sDuration, "100ms..5s"), key("restore", sDuration, "100ms..60s"),
		key("poll", sDuration, "100ms..1s, not above detect and restore"),
		key("action", wordOf("drop", "forward", "alert"), "what a storm does")).with("off")
	s := mapOf(append([]keySpec{key("priorities", sPrios, "lossless classes")}, pgKeys()...)...)
	s.keys = append(s.keys,
		key("quanta", intOf(1, 65535), "pause time sent"),
		key("response", sDuration, "time from the last bit of a PFC frame to the last start that it cannot stop any more; XON takes as long, a pause that runs out does not"),
		key("watchdog", dog, "off when absent"))
	s.index, s.lo, s.hi = prio, 0, 7
	s.exclude = prio.exclude
	return s.with("off")
}

func ecnSpec() *spec {
	keys := []keySpec{
		key("kmin", sSize, "marking starts above"),
		key("kmax", sSize, "all are marked above"),
		key("pmax", sProb, "probability at kmax"),
		key("point", wordOf("dequeue", "enqueue"), "where the queue is looked at"),
		key("weight", intOf(0, 15), "averaging exponent; 0 = instantaneous"),
		key("mark", sBool, "ECT frames are marked; false: dropped when selected"),
		key("drop_not_ect", sBool, "Not-ECT frames that are selected are dropped"),
		key("drop_min", sSize, "WRED drop starts above"),
		key("drop_max", sSize, "WRED drops all above"),
		key("drop_pmax", sProb, "drop probability at drop_max"),
	}
	s := mapOf(keys...)
	s.index, s.lo, s.hi = mapOf(keys...).with("off"), 0, 7
	return s.with("off")
}

func indexed(lo, hi int64, val *spec) *spec {
	return &spec{kind: kMap, lo: lo, hi: hi, index: val}
}

func portKeys() []keySpec {
	lossy := mapOf(key("alpha", sAlpha, "dynamic egress limit"), key("limit", sSize, "static egress limit"))
	lossy.exclude = [][2]string{{"alpha", "limit"}}
	tc := intOf(0, 7)
	return []keySpec{
		key("mtu", sSize, "largest frame, destination MAC through FCS"),
		key("qos", mapOf(
			key("dscp_to_tc", indexed(0, 63, tc), "DSCP not named: TC 0"),
			key("tc_to_pg", indexed(0, 7, tc), "identity when absent"),
			key("tc_to_queue", indexed(0, 7, tc), "identity when absent"),
			key("pfc_to_queue", indexed(0, 7, tc), "identity when absent"),
			key("scheduler", indexed(0, 7, mapOf(key("weight", intOf(1, 255), "DWRR weight; 1 when not given. A turn is as many MTUs as the weight is times the least weight of the port's queues, used or not")).with("strict")), "per queue")), "classification and scheduling"),
		key("pfc", pfcSpec(), "priority flow control"),
		key("lossy", lossy, "limit of lossy queues"),
		key("ecn", ecnSpec(), "marking, for the queues of pfc.priorities or by queue"),
	}
}

func headroomPoolSpec() *spec {
	s := mapOf(key("size", sSize, "bytes of the pool"), key("cap_per_pg", sSize.with("none"), "hard limit of a PG in the pool")).with("none")
	s.orScalar = sSize
	return s
}

func switchLayerSpec() *spec {
	port := mapOf(portKeys()...)
	ports := mapOf(key("server", port, "leaf to RNIC"), key("uplink", port, "leaf to spine"),
		key("downlink", port, "spine to leaf"), key("core", port, "facing a core, or of a core"))
	ports.index, ports.lo, ports.hi = port, 1, 65535
	s := mapOf(
		key("asic", wordOf(asicNames()...), "profile; the keys below override it"),
		key("mode", wordOf("store-and-forward", "cut-through"), "forwarding"),
		key("latency", sDuration, "pipeline latency of a hop"),
		key("boot", sDuration, "time from power to forwarding"),
		key("buffer", mapOf(
			key("size", sSize, "shared packet memory, of which thresholds are a part; headroom and reserved cells lie beside it, and may not be larger"), key("cell", sSize, "allocation unit"),
			key("slices", intOf(1, 16), "memory slices"),
			key("headroom_pool", headroomPoolSpec(), "shared headroom: a size, or size and cap_per_pg"),
			key("cap_per_pg", sSize.with("none"), "hard limit of a PG"),
			key("reserve_off", sBool, "reserved space is taken off the shared pool")), "packet memory"),
		key("ecmp", mapOf(key("hash", wordOf("murmur3", "crc32"), "hash function"),
			key("seed", intOf(0, 1<<32-1).with("auto"), "auto = by device"),
			key("spray", wordOf("none", "packet"), "packet = per-packet spraying")), "equal-cost paths"),
		key("ports", ports, "by class or port number"),
		key("sonic", sNames, "config_db.json, or several files of one device; the layer's own keys win"),
		key("lookup", sText, "pg_profile_lookup.ini for it"))
	s.keys = append(s.keys, portKeys()...)
	return s
}

func switchesSpec() *spec {
	l := switchLayerSpec()
	return mapOf(key("all", l, "every switch"), key("leaf", l, "leaves"), key("spine", l, "spines"),
		key("core", l, "cores"), key("devices", &spec{kind: kMap, other: l}, "by name"))
}

// placesOf lists the dotted paths at which a key is known, for keys written at
// the wrong depth.
var placesOf = sync.OnceValue(func() map[string][]string {
	m := map[string][]string{}
	var walk func(s *spec, path string, depth int)
	walk = func(s *spec, path string, depth int) {
		if s == nil || depth > 8 {
			return
		}
		for _, k := range s.keys {
			p := join(path, k.name)
			m[k.name] = append(m[k.name], p)
			walk(k.spec, p, depth+1)
		}
		walk(s.item, path+"[]", depth+1)
	}
	walk(fileSpec(), "", 0)
	for k := range m {
		sort.SliceStable(m[k], func(i, j int) bool {
			return strings.Count(m[k][i], ".") < strings.Count(m[k][j], ".")
		})
	}
	return m
})
