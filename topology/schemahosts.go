package topology

// The keys of RNICs, workload lines and faults.

func dcqcnSpec() *spec {
	return mapOf(
		key("preset", wordOf(dcqcnNames()...), "a set of the values below: paper = those of the DCQCN paper for 40G; mlx5 = defaults of mlx5 NICs; conweave = those of the ConWeave simulator"),
		key("dce_tcp_g", intOf(0, 1023), "g = (1024 - dce_tcp_g)/1024"),
		key("dce_tcp_rtt", sDuration, "alpha update period"),
		key("initial_alpha_value", intOf(1, 1024), "in 1/1024"),
		key("min_time_between_cnps", sDuration, "receiver: at most one CNP a flow in this time"),
		key("rpg_time_reset", sDuration, "rate timer"),
		key("rpg_byte_reset", sSize, "byte counter; 0B = off"),
		key("rpg_threshold", intOf(0, 31), "stages of fast recovery"),
		key("rpg_ai_rate", sRate, "additive increase"),
		key("rpg_hai_rate", sRate, "hyper increase"),
		key("rpg_min_rate", sRate, "smallest rate"),
		key("rpg_gd", intOf(0, 15), "cut = alpha / 2^(rpg_gd - 10)"),
		key("rpg_min_dec_fac", intOf(0, 100), "percent of the rate that one cut leaves at least"),
		key("rate_reduce_monitor_period", sDuration, "at most one cut in this time"),
		key("clamp_tgt_rate", sBool, "every CNP sets the target rate"),
		key("clamp_tgt_rate_after_time_inc", sBool, "a CNP after a timer increase sets the target rate"),
		key("rate_to_set_on_first_cnp", sRate, "0bps = unused"),
	)
}

func qpSpec() *spec {
	return mapOf(
		key("timeout", intOf(0, 31), "T = 4.096us × 2^timeout; 0 = never"),
		key("retry_cnt", intOf(0, 7), "transport retries"),
		key("rnr_retry", intOf(0, 7), "7 = for ever"),
		key("min_rnr_timer", intOf(0, 31), "code, IBTA table 45"),
		key("max_rd_atomic", intOf(1, 128), "READs and atomics outstanding"),
		key("max_dest_rd_atomic", intOf(0, 255).with("same"), "responder resources; same = max_rd_atomic"),
		key("recv_queue", intOf(0, 1<<20), "receives posted"),
		key("recv_repost", sDuration.with("never"), "from consumption to the new receive"),
		key("recv_batch", intOf(1, 1<<20), "receives reposted together"),
		key("initial_psn", intOf(0, 1<<24-1), "first PSN"),
		key("timeout_mode", wordOf("ibta", "linux", "exact", "article"), "how a timeout is derived"),
		key("timeout_window", wordOf("strict", "t-4t"), "strict fires at exactly T"),
		key("timeout_floor", sDuration, "smallest timeout"),
		key("rnr_decode", wordOf("ibta", "article-linear"), "meaning of the RNR code"),
		key("dup_ack", wordOf("ackreq", "all"), "which duplicates are acknowledged again"),
		key("connect", wordOf("preset", "cm"), "how QPs are set up"),
		key("packet_life", intOf(0, 31), "exponent, for cm"),
		key("ack_delay", intOf(0, 31), "exponent, for cm"),
		key("alt_path", mapOf(key("port", intOf(1, 2), "port of the alternate path")).with("none"), "path migration"),
		key("alt_timeout", intOf(1, 31).with("same"), "timeout on the alternate path; same = timeout"),
		key("psn_window", intOf(1, 1<<23-1).with("max"), "most PSNs unacknowledged; max = 2^23 - 1"),
		key("rnr_early", wordOf("drop", "renak", "execute", "execute_if_ready"), "a resend that comes before the RNR wait is over"),
		key("partial_read", sBool, "a READ gap re-requests only the tail"),
		key("implied_nak", sBool, "false: only the timer finds a lost response"),
		key("send_queue", intOf(1, 1<<20), "work requests posted"),
		key("credits", sBool, "real credits instead of code 31"),
	)
}

func personalitySpec() *spec {
	return mapOf(
		key("nak_latency", sDuration, "gap seen to NAK sent"),
		key("read_nak_latency", sDuration, "READ gap seen to request sent"),
		key("react_latency", sDuration, "NAK received to first retransmission"),
		key("ack_freq_log", intOf(0, 31), "AckReq every 2^n packets"),
		key("m_bit", sBool, "MigReq bit sent"),
		key("retry7_infinite", sBool, "retry_cnt 7 = for ever"),
		key("nak_reload", sBool, "a NAK reloads retry_cnt"),
		key("oos_behind_rnr", sBool, "sequence NAK behind an RNR NAK"),
		key("read_gap_timeout", sBool, "a READ gap waits for the timer"),
		key("probe_one", sBool, "after a timeout one packet probes"),
		key("nack_triggers_cnp", sBool, "a NAK brings a CNP"),
		key("cnp_scope", wordOf("qp", "port", "dst-ip", "ip-pair"), "what CNPs are paced by"),
		key("cnp_floor", sDuration, "smallest CNP interval"),
		key("timeout_max", intOf(1, 31), "largest timeout exponent taken"),
		key("timeout_rule", wordOf("ibta", "qedr", "hip08"), "how the device turns the exponent into a timeout"),
		key("adp", sBool, "adaptive retransmission"),
		key("adp_profile", mapOf(
			key("base", sDuration, "unit of the exponents"),
			key("init_low", intOf(0, 31), "first exponent, at least"),
			key("init_range", intOf(1, 32), "first exponents to draw from"),
			key("ranges", seqOf(seqOf(intOf(0, 31))), "up to four [low, high], ascending"),
			key("start_index", intOf(0, 3), "range entered from outside all"),
			key("timeout_retry_num", intOf(1, 255), "expiries with one exponent"),
			key("dec", intOf(0, 31), "on progress the exponent falls by this; 0 = to the range's low"),
			key("total", sDuration, "longest silence; 0us = timeout × retry_cnt")), "schedule of adaptive retransmission"),
		key("slow_restart", sBool, "lower rate after a loss"),
		key("read_no_ack", sBool, "a READ response does not acknowledge earlier SENDs"),
		key("ack_before_replay", sBool, "plain ACK ahead of a replayed READ or atomic"),
		key("reorder_buffer", intOf(1, 1<<16), "selective repeat: packets held beyond a gap"),
	)
}

func rnicsSpec() *spec {
	l := mapOf(
		key("model", wordOf(nicNames()...), "personality; the keys below override it"),
		key("mtu", &spec{kind: kInt, lo: 256, hi: 4096, among: choice{256, 512, 1024, 2048, 4096}}, "IB path MTU: 256 512 1024 2048 4096"),
		key("recovery", wordOf("go-back-n", "go-back-0", "selective-repeat"), "after a loss"),
		key("latency", sDuration, "pipeline"),
		key("congestion", wordOf("dcqcn", "swift", "none"), "congestion control"),
		key("dcqcn", dcqcnSpec(), "parameters by their mlx5 names"),
		key("swift", mapOf(
			key("base_target", sDuration, "target delay without hops"), key("hop_scale", sDuration, "a hop"),
			key("ai", intOf(1, 1<<20), "packets × 1/1024 an RTT"),
			key("beta", intOf(1, 1024), "in 1/1024"), key("max_mdf", intOf(1, 1024), "in 1/1024")), "Swift"),
		key("dscp", intOf(0, 63), "of data, ACKs and responses"),
		key("cnp_dscp", intOf(0, 63), "of CNPs"),
		key("dscp_to_prio", indexed(0, 63, intOf(0, 7)), "default: the map of the switch port"),
		key("pfc", mapOf(key("priorities", sPrios, "honoured on receive"),
			key("response", sDuration.with("same"), "receive-to-stop time; same = as the switch port at the other end"),
			key("quanta", intOf(1, 65535), "pause time sent")).with("off"), "priority flow control"),
		key("rx_buffer", sSize, "receive buffer"),
		key("host", mapOf(
			key("stack_latency", sDuration, "kernel path, application to NIC and NIC to application"),
			key("copies", intOf(0, 16), "copies of every byte at each end of a TCP stream"),
			key("copy_rate", sRate, "one copy by one core"),
			key("per_packet", sDuration, "CPU time of a segment beside copying"),
			key("per_request", sDuration, "CPU time of posting and polling an RDMA request")), "what the server's software costs"),
		key("tcp", mapOf(
			key("mtu", sSize, "IP packet; MSS = mtu - 40"),
			key("congestion", wordOf(tcpControls...), "congestion control"),
			key("initial_window", intOf(1, 1000), "segments"),
			key("window", sSize, "receive window"),
			key("rto_min", sDuration, "smallest retransmission timeout"),
			key("rto_max", sDuration, "largest retransmission timeout"),
			key("retries", intOf(1, 255), "timeouts in a row until a stream fails")), "streams of transport: tcp"),
		key("sport", intOf(1, 65535).with("from-qp"), "UDP source port"),
		key("ack", wordOf("last", "every"), "which packets ask for an acknowledgement"),
		key("qp", qpSpec(), "attributes of queue pairs"),
		key("personality", personalitySpec(), "what tells models apart"))
	return mapOf(key("all", l, "every RNIC"), key("devices", &spec{kind: kMap, other: l}, "by name"))
}

var tcpControls = []string{"cubic", "dctcp"}

var verbNames = []string{"send", "send-imm", "send-inv", "write", "write-imm", "read", "cmp-swap", "fetch-add"}

var patternNames = []string{"incast", "permutation", "all-to-all", "ring-allreduce", "poisson", "pingmesh"}

func workSpec() *spec {
	cdf := *sText
	cdf.orSeq = seqOf(seqOf(sText))
	return mapOf(
		key("name", sText, "name of the line"),
		key("pattern", wordOf(patternNames...), "many flows from one line"),
		key("from", sNames, "RNIC, list, range a..b, or all"),
		key("to", sNames, "RNIC; for patterns also a list"),
		key("transport", wordOf("rdma", "udp", "tcp"), "default rdma"),
		key("verb", wordOf(verbNames...), "operation"),
		key("size", sSize, "of a request; for ring-allreduce of the vector"),
		key("count", intOf(1, 1<<40).with("forever"), "requests a QP"),
		key("qps", intOf(1, 1<<20), "QPs, each with its own count"),
		key("window", intOf(1, 1<<20), "outstanding requests a QP"),
		key("start", sDuration, "first request"),
		key("interval", sDuration, "between requests"),
		key("rate", sRate, "pace"),
		key("dscp", intOf(0, 63), "instead of the RNIC's"),
		key("qp", sText, "lines with the same name share one QP"),
		key("fence", sBool, "wait for earlier READs"),
		key("unsignalled", sBool, "no completion on success"),
		key("rkey", wordOf("good", "bad", "read-only"), "memory key"),
		key("va", sUint, "remote address"),
		key("add", sUint, "fetch-add operand"), key("compare", sUint, "cmp-swap operand"),
		key("swap", sUint, "cmp-swap operand"), key("initial", sUint, "memory before an atomic"),
		key("shift", intOf(1, 1<<24), "permutation: rnic i to i+shift"),
		key("load", sProb, "poisson: share of the server link"),
		key("cdf", &cdf, `poisson: file of "bytes cumulative%", or a list of pairs`),
		key("until", sDuration, "poisson: last arrival before"),
		key("congestion", wordOf(tcpControls...), "tcp: instead of rnics.tcp.congestion"),
		key("packet", sSize, "udp: payload of a datagram, by default the whole request up to 9170B, else 1472B; tcp: of a segment"),
		key("frame", sSize, "udp: whole frame, instead of packet"),
		key("file", sText, "CSV file: name,from,to,verb,size,start"),
		key("rows", seqOf(seqOf(sText)), "the rows of such a file, with the header"),
	)
}

func faultSpec() *spec {
	match := mapOf(
		key("flow", sText, "workload line or single flow"), key("qp", intOf(0, 1<<24-1), "QPN"),
		key("opcode", sText, "such as write-first"), key("psn", intOf(0, 1<<24-1), "PSN"),
		key("psn_index", intOf(1, 1<<32-1), "n-th packet of its QP and direction"),
		key("iteration", intOf(1, 1<<20).with("any"), "transmission of that packet"),
		key("ack", intOf(1, 1<<32-1), "n-th"), key("nak", intOf(1, 1<<32-1), "n-th"),
		key("rnr", intOf(1, 1<<32-1), "n-th"), key("cnp", intOf(1, 1<<32-1), "n-th"),
		key("kind", wordOf(matchKinds...), "kind of frame"), key("dir", wordOf("in", "out"), "seen from the port"))
	m := mapOf(
		key("name", sText, "name of the fault"),
		key("kind", wordOf(faultKindNames()...), "what breaks"),
		key("target", sText, "device, port or cable, flow, RNIC"),
		key("at", sDuration, "start"), key("for", sDuration, "length"),
		key("count", intOf(1, 1<<62), "hits"),
		key("match", match, "frames"))
	for _, p := range faultParamNames() {
		m.keys = append(m.keys, key(p, sAny, "parameter of some kinds"))
	}
	m.orScalar = sExpr
	m.narrow = func(n *node) []string {
		k := findFaultKind(n.str("kind"))
		if k == nil {
			return nil
		}
		l := append([]string{"name", "kind"}, k.keys()...)
		if k.match {
			l = append(l, "match")
		}
		return l
	}
	return m
}
