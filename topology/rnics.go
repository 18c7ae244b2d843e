package topology

import (
	"fmt"
	"strconv"

	"github.com/rocemu/rocemu/clock"
)

// AltAddr is the IPv4 address of RNIC number k's second port.
func AltAddr(k uint32) uint32 { return 10<<24 | 1<<23 | k }

type nicKey struct {
	eff *node
	qos *QoS // of the switch port it hangs on
	pfc *PFC
}

// rnics fills every RNIC and its ports; equal settings share one struct.
func (r *resolver) rnics() {
	r.checkDeviceKeys("rnics", true)
	sec := r.root.get("rnics")
	all := overlay(expandNIC(defaults().path("rnics", "all")), expandNIC(sec.get("all")))
	cache := map[nicKey]*NIC{}
	pfc := map[*NIC]*PFC{}
	for _, id := range r.plan.RNICs {
		d := &r.plan.Devices[id]
		eff := all
		if own := sec.path("devices", d.Name); own != nil && own.kind == nMap {
			eff = overlay(all, expandNIC(own))
		}
		k := nicKey{eff: eff}
		if len(d.Ports) > 0 {
			far := r.plan.far(&d.Ports[0])
			k.qos, k.pfc = far.QoS, far.PFC
		}
		nic, ok := cache[k]
		if !ok {
			nic = r.decodeNIC(eff, k)
			cache[k] = nic
		}
		if pfc[nic] == nil {
			pfc[nic] = nicPFC(nic)
		}
		d.NIC = nic
		if nic.QP.AltPort > len(d.Ports) {
			r.contradict(eff, "rnics", d.Name+" has no such port; topology.ports: 2 gives every RNIC two", "",
				said{key: "qp.alt_path.port", text: strconv.Itoa(nic.QP.AltPort), n: eff.path("qp", "alt_path", "port")},
				said{key: "topology.ports", text: strconv.Itoa(len(d.Ports)), n: r.root.path("topology", "ports")})
		}
		for j := range d.Ports {
			p := &d.Ports[j]
			p.EgressHalf, p.IngressHalf = halves(nic.Latency)
			p.Response = nic.Response
			p.MTU = 65535
			p.PFC = pfc[nic]
		}
	}
}

// Swift parameters.
type Swift struct {
	BaseTarget, HopScale clock.Duration
	AI                   int64 // packets × 1/1024 an RTT
	Beta, MaxMDF         int64 // × 1/1024
}

// far returns the port at the other end of a cable.
func (p *Plan) far(pt *Port) *Port { return &p.Devices[pt.Peer].Ports[pt.PeerPort-1] }

// nicResponse is an RNIC's receive-to-stop time: its own, or by default that of
// the switch port it hangs on, so that one setting tells the reaction of a
// cable's both ends; it includes the egress half in any case.
func nicResponse(p *node, far *PFC, latency clock.Duration) clock.Duration {
	if p.str("response") != "same" {
		return p.dur("response")
	}
	half, _ := halves(latency)
	if far == nil {
		return half
	}
	return max(far.Response, half)
}

// nicPFC is the PFC setting of an RNIC's port, in a switch port's terms.
func nicPFC(nic *NIC) *PFC {
	p := &PFC{Lossless: nic.Lossless, Quanta: nic.Quanta, Response: nic.Response}
	for i := range 8 {
		p.Alpha[i], p.Headroom[i], p.XONOffset[i] = Alpha{1, 1}, -1, 18000
	}
	return p
}

func (r *resolver) decodeNIC(n *node, k nicKey) *NIC {
	nic := &NIC{
		Model: n.str("model"), MTU: int(n.num("mtu")), Recovery: n.str("recovery"), Latency: n.dur("latency"),
		Congestion: n.str("congestion"), DCQCN: decodeDCQCN(n.get("dcqcn")), DSCP: uint8(n.num("dscp")), CNPDSCP: uint8(n.num("cnp_dscp")),
		RxBuffer: n.size("rx_buffer"), SPort: uint16(n.num("sport")), AckEvery: n.str("ack") == "every",
		QP: decodeQP(n.get("qp")), Pers: decodePersonality(n.get("personality")),
	}
	nic.Pers.Name = nic.Model
	nic.Host, nic.TCP = decodeHost(n.get("host")), r.decodeTCP(n.get("tcp"), n)
	switch nic.MTU {
	case 256, 512, 1024, 2048, 4096:
	default:
		r.fail(orNode(n.get("mtu"), n), "rnics.mtu", n.str("mtu"), "must be 256, 512, 1024, 2048 or 4096, a bare number", "1024")
	}
	sw := n.get("swift")
	nic.Swift = Swift{sw.dur("base_target"), sw.dur("hop_scale"), sw.num("ai"), sw.num("beta"), sw.num("max_mdf")}
	p := overlay(defaults().path("rnics", "all", "pfc"), n.get("pfc"))
	if n.get("pfc") != nil && n.get("pfc").kind == nScalar {
		p = overlay(defaults().path("rnics", "all", "pfc"), &node{kind: nMap, keys: []entry{{key: "priorities", val: &node{kind: nSeq}}}})
	}
	for _, x := range p.list("priorities") {
		if v, bad := parseInt(x.text); bad == nil && v >= 0 && v < 8 {
			nic.Lossless[v] = true
		}
	}
	nic.Response, nic.Quanta = nicResponse(p, k.pfc, nic.Latency), uint16(p.num("quanta"))
	asked := said{key: "qp.timeout", text: n.path("qp").str("timeout"), n: n.path("qp", "timeout")}
	if nic.QP.Timeout > nic.Pers.TimeoutMax {
		r.contradict(n, "rnics", fmt.Sprintf("this model takes a timeout of 0..%d", nic.Pers.TimeoutMax), "", asked,
			said{key: "personality.timeout_max", text: n.path("personality").str("timeout_max"), n: n.path("personality", "timeout_max")}, saidBy(n, "model"))
	}
	if nic.QP.Timeout == 0 {
		r.warn("timeout-zero", "rnics.qp.timeout", n.path("qp", "timeout"), "timeout 0 never times out: a lost packet that no later one reveals is never sent again")
	}
	r.checkADP(n.path("personality", "adp_profile"))
	if nic.Pers.TimeoutRule == "hip08" && nic.QP.Timeout > 20 {
		r.contradict(n, "rnics", "timeout_rule hip08 takes a timeout of 0..20", "", asked,
			said{key: "personality.timeout_rule", text: "hip08", n: n.path("personality", "timeout_rule")}, saidBy(n, "model"))
	}
	nic.PrioOf = r.priorities(n.get("dscp_to_prio"), k)
	return nic
}

// priorities maps DSCP to the priority of a sent frame: as the switch port at
// the other end classifies it, so that its PFC stops what it means to stop,
// unless the file says otherwise.
func (r *resolver) priorities(own *node, k nicKey) (m [64]uint8) {
	q := k.qos
	if q == nil {
		q = decodeQoS(defaults().path("switches", "all", "qos"))
	}
	for d := range m {
		tc := q.DSCPToTC[d]
		m[d] = tc
		if pg := q.TCToPG[tc]; k.pfc != nil && k.pfc.Lossless[pg] {
			m[d] = pg
		}
	}
	if own != nil {
		for _, e := range own.keys {
			if i, err := strconv.Atoi(e.key); err == nil && i >= 0 && i < 64 {
				m[i] = uint8(own.num(e.key)) & 7
			}
		}
	}
	return m
}

func decodeQP(n *node) QPParams {
	q := QPParams{
		Timeout: uint8(n.num("timeout")), RetryCnt: uint8(n.num("retry_cnt")), RNRRetry: uint8(n.num("rnr_retry")),
		MinRNRTimer: uint8(n.num("min_rnr_timer")), MaxRdAtomic: int(n.num("max_rd_atomic")), RecvQueue: int(n.num("recv_queue")),
		RecvRepost: n.dur("recv_repost"), RecvBatch: int(n.num("recv_batch")), InitialPSN: uint32(n.num("initial_psn")),
		WindowT4: n.str("timeout_window") == "t-4t", TimeoutFloor: n.dur("timeout_floor"), RNRLinear: n.str("rnr_decode") == "article-linear",
		DupAckAll: n.str("dup_ack") == "all", ConnectCM: n.str("connect") == "cm", PacketLife: uint8(n.num("packet_life")),
		AckDelay: uint8(n.num("ack_delay")), RNREarly: n.str("rnr_early"), PartialRead: n.flag("partial_read"),
		ImpliedNAK: n.flag("implied_nak"), SendQueue: int(n.num("send_queue")), Credits: n.flag("credits"),
	}
	if n.str("recv_repost") == "never" {
		q.RecvRepost = clock.Duration(clock.Never)
	}
	q.MaxDestRd, q.AltTimeout = q.MaxRdAtomic, q.Timeout
	if n.str("max_dest_rd_atomic") != "same" {
		q.MaxDestRd = int(n.num("max_dest_rd_atomic"))
	}
	if n.str("alt_timeout") != "same" {
		q.AltTimeout = uint8(n.num("alt_timeout"))
	}
	if n.str("psn_window") != "max" {
		q.PSNWindow = uint32(n.num("psn_window"))
	}
	if n.get("alt_path") != nil && n.get("alt_path").kind == nMap {
		q.AltPort = int(n.get("alt_path").num("port"))
	}
	q.TimeoutMode = map[string]TimeoutMode{"linux": TimeoutLinux, "exact": TimeoutExact, "article": TimeoutArticle}[n.str("timeout_mode")]
	return q
}

func decodePersonality(n *node) Personality {
	return Personality{
		NakLatency: n.dur("nak_latency"), ReadNakLatency: n.dur("read_nak_latency"), ReactLatency: n.dur("react_latency"),
		AckFreqLog: uint8(n.num("ack_freq_log")), MBit: n.flag("m_bit"), Retry7Infinite: n.flag("retry7_infinite"),
		NakReload: n.flag("nak_reload"), OOSBehindRNR: n.flag("oos_behind_rnr"), ReadGapTimeout: n.flag("read_gap_timeout"),
		ProbeOne: n.flag("probe_one"), NackTriggersCNP: n.flag("nack_triggers_cnp"), CNPScope: n.str("cnp_scope"),
		CNPFloor: n.dur("cnp_floor"), TimeoutMax: uint8(n.num("timeout_max")), ADP: n.flag("adp"), SlowRestart: n.flag("slow_restart"),
		TimeoutRule: n.str("timeout_rule"), ADPProfile: decodeADP(n.get("adp_profile")), ReadNoAck: n.flag("read_no_ack"),
		AckBeforeReplay: n.flag("ack_before_replay"), Reorder: int(n.num("reorder_buffer")),
	}
}

func decodeDCQCN(n *node) DCQCN {
	return DCQCN{
		GNum: 1024 - n.num("dce_tcp_g"), GDen: 1024, AlphaPeriod: n.dur("dce_tcp_rtt"), InitialAlpha: n.num("initial_alpha_value"),
		CNPInterval: n.dur("min_time_between_cnps"), TimeReset: n.dur("rpg_time_reset"), ByteReset: n.size("rpg_byte_reset"),
		Threshold: n.num("rpg_threshold"), AIRate: n.rate("rpg_ai_rate"), HAIRate: n.rate("rpg_hai_rate"), MinRate: n.rate("rpg_min_rate"),
		GD: n.num("rpg_gd"), MinDecFac: n.num("rpg_min_dec_fac"), ReducePeriod: n.dur("rate_reduce_monitor_period"),
		ClampTgt: n.flag("clamp_tgt_rate"), ClampTgtATI: n.flag("clamp_tgt_rate_after_time_inc"), FirstCNPRate: n.rate("rate_to_set_on_first_cnp"),
	}
}
