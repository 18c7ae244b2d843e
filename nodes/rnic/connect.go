package rnic

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/topology"
)

// newConfig turns the plan's settings into those of the transport machines.
// other are the peer's attributes; they matter with the connection manager.
func newConfig(seed uint64, nic *topology.NIC, par, other *topology.QPParams, mtu int) *qp.Config {
	p := &nic.Pers
	c := &qp.Config{
		MTU: mtu, RetryCnt: par.RetryCnt, RNRRetry: par.RNRRetry, MinRNRTimer: par.MinRNRTimer, SendQueue: par.SendQueue,
		WindowT4: par.WindowT4, RNRLinear: par.RNRLinear,
		MaxRdAtomic: par.MaxRdAtomic, MaxDestRdAtomic: par.MaxDestRd, PSNWindow: par.PSNWindow,
		AckEvery:   nic.AckEvery || nic.Congestion == "swift", // a window moves by acknowledgements alone
		AckFreqLog: p.AckFreqLog,
		RecvQueue:  par.RecvQueue, RecvRepost: par.RecvRepost, RecvBatch: max(par.RecvBatch, 1), DupAckAll: par.DupAckAll,
		PartialRead: par.PartialRead, ImpliedNAK: par.ImpliedNAK, Credits: par.Credits,
		NakLatency: p.NakLatency, ReadNakLatency: p.ReadNakLatency, ReactLatency: p.ReactLatency,
		MBit: p.MBit, Retry7Infinite: p.Retry7Infinite, NakReload: p.NakReload, OOSBehindRNR: p.OOSBehindRNR,
		ReadGapTimeout: p.ReadGapTimeout, ProbeOne: p.ProbeOne, NackTriggersCNP: p.NackTriggersCNP, SlowRestart: p.SlowRestart,
		ReadNoAck: p.ReadNoAck, AckBeforeReplay: p.AckBeforeReplay, ReorderMax: p.Reorder,
		IngressHalf: nic.Latency - nic.Latency/2, Seed: seed,
	}
	switch nic.Recovery {
	case "go-back-0":
		c.Recovery = qp.GoBack0
	case "selective-repeat":
		c.Recovery = qp.SelectiveRepeat
	}
	switch par.RNREarly {
	case "drop":
		c.RNREarly = qp.RNREarlyDrop
	case "renak":
		c.RNREarly = qp.RNREarlyRenak
	}
	if p.ADP {
		c.ADP = adpOf(&p.ADPProfile)
	}
	t := timersOf(nic, par, other)
	c.Timeout, c.AltTimeout = t.Effective, t.Alternate
	if par.ConnectCM {
		r := negotiate(mtu, par, other)
		c.MaxRdAtomic, c.Credits = r.MaxRdAtomic, r.Credits
	}
	return c
}

func adpOf(p *topology.ADPProfile) *qp.ADP {
	a := &qp.ADP{
		Base: p.Base, InitLow: p.InitLow, InitRange: p.InitRange, NRanges: p.NRanges, StartIndex: p.StartIndex,
		PerValue: p.PerValue, Dec: p.Dec, Total: p.Total,
	}
	for i, r := range p.Ranges {
		a.Ranges[i] = qp.ADPRange{Low: r[0], High: r[1]}
	}
	return a
}

// negotiate is the exchange of REQ and REP as the end with par uses it
// (transport §3.2). The plan has refused what cannot connect.
func negotiate(mtu int, par, other *topology.QPParams) qp.CMResult {
	offer := func(p *topology.QPParams) qp.CMOffer {
		return qp.CMOffer{
			MTU: mtu, InitiatorDepth: p.MaxRdAtomic, ResponderDepth: p.MaxDestRd, RetryCnt: p.RetryCnt, RNRRetry: p.RNRRetry,
			AckDelay: p.AckDelay, PacketLife: p.PacketLife, MinRNRTimer: p.MinRNRTimer, AltPath: p.AltPort > 0, EndToEndCredits: p.Credits,
		}
	}
	req, rep := offer(par), offer(other)
	if rep.ResponderDepth == 0 { // the passive end asks nothing of the active one
		req.InitiatorDepth = 0
	}
	r, err := qp.Negotiate(req, rep, true)
	if err != nil {
		panic("rnic: " + err.Error())
	}
	return r
}

// Timers is how an end's local ACK timeout came about.
type Timers struct {
	Mode       string         // ibta | linux | exact | article
	Exponent   uint8          // the attribute, or what the connection manager negotiated (0 = none carries it)
	Proposed   clock.Duration // by the QP attribute, as this device reads it; 0 = never
	Negotiated clock.Duration // after the connection manager and the mode
	Floor      clock.Duration // smallest the device keeps
	Effective  clock.Duration
	Alternate  clock.Duration // on the alternate path
	Clamped    bool           // Effective is the floor
}

var modeNames = [...]string{topology.TimeoutIBTA: "ibta", topology.TimeoutLinux: "linux", topology.TimeoutExact: "exact", topology.TimeoutArticle: "article"}

var vendors = map[string]qp.Vendor{"": qp.VendorIBTA, "ibta": qp.VendorIBTA, "qedr": qp.VendorQEDR, "hip08": qp.VendorHIP08}

// timersOf resolves the timeout of an end with par on nic against the peer's
// attributes. The connection manager replaces the exponent by one made of this
// side's path lifetime and the peer's ACK delay; the exact and the article's
// form then stand as times.
func timersOf(nic *topology.NIC, par, other *topology.QPParams) Timers {
	v := vendors[nic.Pers.TimeoutRule]
	value := func(p qp.TimeoutParams) qp.TimeoutValue {
		p.Vendor, p.Floor = v, par.TimeoutFloor
		if p.Mode == qp.TimeoutIBTA && v == qp.VendorHIP08 {
			p.Exponent = min(p.Exponent, 20)
		}
		t, err := qp.ResolveTimeout(p)
		if err != nil {
			panic("rnic: " + err.Error())
		}
		return t
	}
	own := value(qp.TimeoutParams{Exponent: par.Timeout})
	p := qp.TimeoutParams{Mode: qp.TimeoutMode(par.TimeoutMode), Exponent: par.Timeout, PacketLife: par.PacketLife, AckDelay: par.AckDelay}
	if par.ConnectCM {
		p.AckDelay = other.AckDelay
		p.Exponent = qp.CMExponent(p.AckDelay, p.PacketLife)
	}
	switch p.Mode {
	case qp.TimeoutLinux:
		p.Mode, p.Exponent = qp.TimeoutIBTA, qp.CMLinux(p.AckDelay, p.PacketLife)
	case qp.TimeoutExact, qp.TimeoutArticle:
		p.Exponent = 0
	}
	t := value(p)
	out := Timers{
		Mode: modeNames[par.TimeoutMode], Exponent: p.Exponent, Proposed: own.Asked, Negotiated: t.Asked,
		Floor: par.TimeoutFloor, Effective: t.T, Alternate: t.T, Clamped: t.Clamped,
	}
	if par.AltTimeout != par.Timeout {
		out.Alternate = value(qp.TimeoutParams{Exponent: par.AltTimeout}).T
	}
	return out
}
