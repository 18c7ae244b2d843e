package topology

import "github.com/rocemu/rocemu/clock"

// TCP streams and the host path they take.

// Host is what a server's software costs. The kernel path (`transport: tcp`)
// copies every byte and takes StackLatency each way; RDMA only posts and polls
// (switch §0.1).
type Host struct {
	StackLatency clock.Duration // application to NIC, and NIC to application
	Copies       int            // of every byte, at each end
	CopyRate     clock.Rate     // of one copy by one core
	PerPacket    clock.Duration // CPU time of a segment or acknowledgement beside copying
	PerRequest   clock.Duration // CPU time to post an RDMA request and poll its completion
}

// TCPParams are those of TCP streams.
type TCPParams struct {
	MTU            int // of the IP packet; MSS = MTU - 40
	DCTCP          bool
	InitialWindow  int   // segments
	Window         int64 // receive window, bytes
	RTOMin, RTOMax clock.Duration
	Retries        int
}

// saneStream checks what only TCP streams take.
func (w *work) saneStream(l *line) {
	if l.transport != TCP {
		if l.n.has("congestion") {
			w.contradict(l, "congestion belongs to transport tcp; RDMA's is rnics.congestion", "", "congestion", "transport")
		}
		return
	}
	if l.n.has("frame") {
		w.contradict(l, "frame belongs to transport udp; packet is the segment size of tcp", "", "frame", "transport")
	}
	if l.n.has("size") && l.size == 0 {
		w.r.fail(l.n.get("size"), l.field+".size", l.n.str("size"), "a stream's request has at least 1B", "1B")
	}
}

// stream fills what a TCP flow takes from its line and its sender.
func (w *work) stream(l *line, f *Flow) {
	t := &w.r.plan.RNIC(f.From).NIC.TCP
	f.DCTCP = t.DCTCP
	if l.control != "" {
		f.DCTCP = l.control == "dctcp"
	}
	const headers = 40 // IPv4 and TCP
	if most := t.MTU - headers; f.Packet == 0 || f.Packet > most {
		f.Packet = most
	}
}

// decodeHost reads rnics.host.
func decodeHost(n *node) Host {
	return Host{
		StackLatency: n.dur("stack_latency"), Copies: int(n.num("copies")), CopyRate: max(n.rate("copy_rate"), 1),
		PerPacket: n.dur("per_packet"), PerRequest: n.dur("per_request"),
	}
}

func (r *resolver) decodeTCP(n, nic *node) TCPParams {
	t := TCPParams{
		MTU: int(n.size("mtu")), DCTCP: n.str("congestion") == "dctcp", InitialWindow: int(n.num("initial_window")),
		Window: n.size("window"), RTOMin: n.dur("rto_min"), RTOMax: n.dur("rto_max"), Retries: int(n.num("retries")),
	}
	for _, x := range []struct {
		key  string
		ok   bool
		want string
	}{
		{"mtu", t.MTU >= 68 && t.MTU <= 65535-18, "must be 68B..65517B"},
		{"window", t.Window <= 1<<30, "must be at most 1GiB"},
		{"rto_min", t.RTOMin > 0, "must be above 0"},
		{"rto_max", t.RTOMax <= 1000*clock.Second, "must be at most 1000s"},
	} {
		if !x.ok {
			r.fail(orNode(n.get(x.key), nic), "rnics.tcp."+x.key, n.str(x.key), x.want, "")
		}
	}
	if t.Window < int64(t.MTU) {
		r.ordered(n, "rnics.tcp", "mtu", "window")
	}
	if t.RTOMax < t.RTOMin {
		r.ordered(n, "rnics.tcp", "rto_min", "rto_max")
	}
	return t
}
