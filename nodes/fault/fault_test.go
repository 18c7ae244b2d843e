package fault

import (
	"math"
	"math/big"
	"testing"

	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

const us = clock.Microsecond

// pairPlan is rnic1 - leaf1 - rnic2 with one queue pair: device 0 is the leaf.
func pairPlan() *topology.Plan {
	const g = 100 * clock.Gbps
	port := func(num int, peer int32, pp int) topology.Port {
		return topology.Port{
			Num: num, Peer: peer, PeerPort: pp, Rate: g, Prop: 500 * clock.Nanosecond,
			EgressHalf: 500 * clock.Nanosecond, IngressHalf: 500 * clock.Nanosecond, Response: us,
		}
	}
	p := &topology.Plan{Seed: 1, RNICs: []int32{1, 2}}
	p.Devices = []topology.Device{
		{
			ID: 0, Kind: topology.Leaf, Name: "leaf1", Num: 1, Ports: []topology.Port{port(1, 1, 1), port(2, 2, 1)},
			Route: []int16{0, 1}, Groups: [][]uint16{{1}, {2}}, Switch: &topology.Switch{Boot: 10 * us},
		},
		{ID: 1, Kind: topology.RNIC, Name: "rnic1", Num: 1, Ports: []topology.Port{port(1, 0, 1)}, NIC: &topology.NIC{Quanta: 65535}},
		{ID: 2, Kind: topology.RNIC, Name: "rnic2", Num: 2, Ports: []topology.Port{port(1, 0, 2)}, NIC: &topology.NIC{Quanta: 65535}},
	}
	p.QPs = []topology.QP{{ID: 0, A: 1, B: 2, AQPN: 0x11, BQPN: 0x12, SPort: 50000, DSCP: 26}}
	p.Flows = []topology.Flow{{ID: 0, QP: 0, From: 1, To: 2}}
	return p
}

func fault(name, kind string, at clock.Time, d clock.Duration, params map[string]string) topology.Fault {
	return topology.Fault{
		Name: name, Kind: kind, Target: "leaf1:2", At: at, For: d, Dev: 0, Port: 2, Cable: 1, Peer: 2, PPort: 1,
		Params: params, Pos: "x.yaml:1:1",
	}
}

func device(t *testing.T, id int32, fs ...topology.Fault) *Device {
	t.Helper()
	plan := pairPlan()
	var specs []Spec
	for i := range fs {
		s, err := Compile(plan, &fs[i], int32(i))
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, s)
	}
	return NewDevice(plan, id, specs)
}

func data(index uint32, n int) wire.Frame {
	f := wire.Frame{Src: 1, Dst: 2, Index: index, Iter: 1, Len: uint16(n), TTL: 64, TOS: 26<<2 | wire.ECT0}
	f.SetOp(wire.WriteMiddle, 0x12)
	f.SetPSN(wire.PSN(99 + index))
	return f
}

type sink struct {
	sent []wire.Frame
	late []wire.Frame
}

func (s *sink) Send(_ int, f *wire.Frame)     { s.sent = append(s.sent, *f) }
func (s *sink) SendLate(_ int, f *wire.Frame) { s.late = append(s.late, *f) }

func TestDropByIndexHitsOnce(t *testing.T) {
	f := fault("d", "drop", 0, 0, nil)
	f.Count = 1
	f.Match = topology.Match{Set: true, PSNIndex: 3, Iteration: 1, Dir: "out"}
	d := device(t, 0, f)
	var recs []record.Record
	d.Emit = func(r record.Record) { recs = append(recs, r) }
	d.Step(0)
	var out sink
	drops := 0
	for i := uint32(1); i <= 5; i++ {
		x := data(i, 1082)
		if s := d.Send(clock.Time(i), 2, &x, &out); s.Drop == record.Fault {
			drops++
			if i != 3 {
				t.Errorf("frame %d dropped", i)
			}
		}
	}
	again := data(3, 1082)
	again.Iter = 2
	d.Send(9, 2, &again, &out)
	if drops != 1 || len(out.sent) != 5 {
		t.Fatalf("drops %d, sent %d", drops, len(out.sent))
	}
	if len(recs) != 3 || recs[1].Kind != record.FaultHit || recs[1].PSN != 102 || recs[2].Kind != record.FaultEnd {
		t.Errorf("records %+v", recs)
	}
	if d.Next() != 3 {
		t.Errorf("the End event is due at %v", d.Next())
	}
	ev := d.Step(9)
	if len(ev) != 1 || ev[0].Phase != Ended || d.Busy(2) {
		t.Errorf("events %v busy %v", ev, d.Busy(2))
	}
}

func TestOrdinalsOfAcknowledgements(t *testing.T) {
	ack := func(syn uint8, n uint32) wire.Frame {
		f := wire.Frame{Kind: wire.KindAck, Src: 2, Dst: 1, Index: n, Len: wire.AckFrame}
		f.SetOp(wire.Acknowledge, 0x11)
		f.SetAETH(syn, 0)
		return f
	}
	plan := pairPlan()
	for _, c := range []struct {
		m    topology.Match
		f    wire.Frame
		want bool
	}{
		{topology.Match{Ack: 2}, ack(wire.SynUnlimited, 2), true},
		{topology.Match{Ack: 2}, ack(wire.SynUnlimited, 1), false},
		{topology.Match{Ack: 1}, ack(wire.SynNAKSequence, 1), false},
		{topology.Match{Nak: 1}, ack(wire.SynNAKSequence, 1), true},
		{topology.Match{Nak: 1}, ack(wire.SynNAKAccess, 1), true},
		{topology.Match{RNR: 1}, ack(wire.SynRNR|12, 1), true},
		{topology.Match{RNR: 1}, ack(wire.SynNAKSequence, 1), false},
		{topology.Match{Kind: "ack"}, ack(wire.SynRNR|12, 1), false},
		{topology.Match{PSNIndex: 2, Iteration: 1}, ack(wire.SynUnlimited, 2), false},
		{topology.Match{Kind: "data"}, data(1, 100), true},
		{topology.Match{Kind: "cnp"}, data(1, 100), false},
		{topology.Match{QPN: 0x12, HasQP: true}, data(1, 100), true},
		{topology.Match{QPN: 0x13, HasQP: true}, data(1, 100), false},
		{topology.Match{Flow: "f", FlowIDs: []int32{0}}, ack(wire.SynUnlimited, 1), true},
		{topology.Match{Op: uint8(wire.WriteMiddle), HasOp: true}, data(1, 100), true},
		{topology.Match{Op: uint8(wire.WriteLast), HasOp: true}, data(1, 100), false},
		{topology.Match{PSN: 100, HasPSN: true, Iteration: 1}, data(1, 100), true},
	} {
		ft := fault("x", "drop", 0, 0, nil)
		ft.Match = c.m
		m := compileMatch(plan, &ft)
		if got := m.ok(&c.f); got != c.want {
			t.Errorf("%+v on %v/%d: %v", c.m, c.f.Op(), c.f.Index, got)
		}
	}
}

// TestVerdictOfEachFrameKind runs one frame through each kind alone.
func TestVerdictOfEachFrameKind(t *testing.T) {
	for _, c := range []struct {
		kind   string
		params map[string]string
		check  func(f *wire.Frame, s Sent, o *sink) bool
	}{
		{"drop", nil, func(_ *wire.Frame, s Sent, o *sink) bool { return s.Drop == record.Fault && len(o.sent) == 0 }},
		{"loss", nil, func(_ *wire.Frame, s Sent, _ *sink) bool { return s.Drop == record.Fault }},
		{"loss", map[string]string{"probability": "0"}, func(_ *wire.Frame, s Sent, o *sink) bool { return s.Drop == 0 && len(o.sent) == 1 }},
		{"blackhole", map[string]string{"dst": "rnic2", "dir": "out"}, func(_ *wire.Frame, s Sent, _ *sink) bool { return s.Drop == record.Fault }},
		{"blackhole", map[string]string{"dst": "rnic1", "dir": "out"}, func(_ *wire.Frame, s Sent, _ *sink) bool { return s.Drop == 0 }},
		{"duplicate", nil, func(_ *wire.Frame, s Sent, o *sink) bool { return s.Extra == 1 && len(o.sent) == 2 }},
		{"delay", map[string]string{"by": "3us"}, func(_ *wire.Frame, _ Sent, o *sink) bool {
			return len(o.sent) == 0 && len(o.late) == 1 && o.late[0].At == 1000+clock.Time(3*us)
		}},
		{"reorder", nil, func(_ *wire.Frame, s Sent, o *sink) bool { return s.Drop == 0 && len(o.sent) == 0 }},
		{"mark-ce", nil, func(_ *wire.Frame, _ Sent, o *sink) bool { return o.sent[0].ECN() == wire.CE }},
		{"dscp", map[string]string{"to": "0", "dir": "out"}, func(_ *wire.Frame, _ Sent, o *sink) bool {
			return o.sent[0].DSCP() == 0 && o.sent[0].ECN() == wire.ECT0
		}},
		{"ber", map[string]string{"to": "1"}, func(_ *wire.Frame, s Sent, o *sink) bool { return s.Drop == 0 && o.sent[0].Has(wire.FlagBadFCS) }},
		{"corrupt", map[string]string{"field": "fcs"}, flagged(wire.FlagBadFCS)},
		{"corrupt", map[string]string{"field": "icrc"}, flagged(wire.FlagBadICRC)},
		{"corrupt", map[string]string{"field": "ip.id"}, flagged(wire.FlagBadICRC)},
		{"corrupt", map[string]string{"field": "bth.psn"}, flagged(wire.FlagBadICRC)},
		{"corrupt", map[string]string{"field": "ethertype"}, flagged(wire.DamagedType)},
		{"corrupt", map[string]string{"field": "ip.checksum"}, flagged(wire.FlagBadHdr)},
		{"corrupt", map[string]string{"field": "ip.ttl"}, flagged(0)},
		{"corrupt", map[string]string{"field": "ip.tos"}, flagged(0)},
		{"corrupt", map[string]string{"field": "udp.checksum"}, flagged(0)},
		{"corrupt", map[string]string{"field": "bth.resv"}, flagged(0)},
	} {
		d := device(t, 0, fault("f", c.kind, 0, 0, c.params))
		d.Step(0)
		f, o := data(1, 1082), sink{}
		f.At = 1000
		if s := d.Send(10, 2, &f, &o); !c.check(&f, s, &o) {
			t.Errorf("%s %v: %+v, sent %d, late %d", c.kind, c.params, s, len(o.sent), len(o.late))
		}
	}
}

// TestMTUOfAnRNIC: a switch has its own length check, see package fabric.
func TestMTUOfAnRNIC(t *testing.T) {
	f := fault("m", "mtu", 0, 0, map[string]string{"size": "1081B"})
	f.Dev, f.Port = 2, 1
	d := device(t, 2, f)
	d.Step(0)
	for n, want := range map[int]record.Reason{1081: 0, 1082: record.MTU} {
		x := data(1, n)
		if g := d.In(1, 1, &x); g.Drop != want {
			t.Errorf("%d B: %v", n, g.Drop)
		}
	}
}

// TestCorruptTakesFramesThatHaveTheField, and of two damages the one that the
// receiver meets first stays: type, then IP header, then ICRC.
func TestCorruptTakesFramesThatHaveTheField(t *testing.T) {
	pause, udp := wire.Frame{Kind: wire.KindPFC, Len: wire.PFCFrame}, wire.Frame{Kind: wire.KindUDP, Len: 200, TTL: 64}
	roceFrame := data(1, 1083)
	roceFrame.SetPad(1021)
	has := map[string][3]bool{ // RoCE, UDP, PFC
		"fcs": {true, true, true}, "ethertype": {true, true, true},
		"ip.id": {true, true, false}, "ip.ttl": {true, true, false}, "ip.tos": {true, true, false}, "ip.checksum": {true, true, false},
		"udp.checksum": {true, true, false}, "bth.resv": {true, false, false}, "bth.psn": {true, false, false}, "pad": {true, false, false}, "icrc": {true, false, false},
	}
	for f := range numFields {
		for i, frame := range []*wire.Frame{&roceFrame, &udp, &pause} {
			if got, want := f.in(frame), has[f.String()][i]; got != want {
				t.Errorf("%v in frame %d: %v", f, i, got)
			}
		}
	}
	for _, c := range []struct {
		fields []Field
		want   wire.Flags
	}{
		{[]Field{FieldICRC, FieldIPChecksum}, wire.FlagBadHdr},
		{[]Field{FieldIPChecksum, FieldIPID}, wire.FlagBadHdr},
		{[]Field{FieldEtherType, FieldIPChecksum, FieldICRC}, wire.DamagedType},
		{[]Field{FieldIPChecksum, FieldEtherType}, wire.DamagedType},
	} {
		f := data(1, 1082)
		for _, x := range c.fields {
			corrupt(x, &f)
		}
		if got := f.Flags() & wire.DamagedType; got != c.want {
			t.Errorf("%v: flags %02x, want %02x", c.fields, got, c.want)
		}
	}
	if corrupt(FieldIPID, &udp); udp.Flags() != 0 {
		t.Error("nothing covers the identification of a datagram")
	}
}

func flagged(want wire.Flags) func(*wire.Frame, Sent, *sink) bool {
	return func(_ *wire.Frame, s Sent, o *sink) bool {
		return s.Drop == 0 && len(o.sent) == 1 && o.sent[0].Flags()&(wire.FlagBadFCS|wire.FlagBadICRC|wire.FlagBadHdr) == want
	}
}

func TestReorderSwapsWithNext(t *testing.T) {
	f := fault("r", "reorder", 0, 0, nil)
	f.Count = 1
	f.Match = topology.Match{PSNIndex: 2, Iteration: 1}
	d := device(t, 0, f)
	d.Step(0)
	var o sink
	for i := uint32(1); i <= 4; i++ {
		x := data(i, 1082)
		x.At = clock.Time(i) * 1000
		d.Send(clock.Time(i), 2, &x, &o)
	}
	want := []struct {
		index uint32
		at    clock.Time
	}{{1, 1000}, {3, 3000}, {2, 3000}, {4, 4000}}
	for i, w := range want {
		if o.sent[i].Index != w.index || o.sent[i].At != w.at {
			t.Errorf("place %d: frame %d at %v, want %d at %v", i, o.sent[i].Index, o.sent[i].At, w.index, w.at)
		}
	}
}

func TestInDelaysAndSwaps(t *testing.T) {
	f := fault("l", "delay", 0, 0, map[string]string{"by": "5us", "dir": "in"})
	f.Match = topology.Match{PSNIndex: 1, Iteration: 1}
	d := device(t, 0, f)
	d.Step(0)
	x := data(1, 1082)
	if g := d.In(100, 2, &x); !g.Keep {
		t.Fatal("not kept")
	}
	if _, _, ok := d.Held(clock.Time(5 * us)); ok {
		t.Error("due too early")
	}
	if d.NextHeld() != 100+clock.Time(5*us) {
		t.Errorf("due at %v", d.NextHeld())
	}
	port, g, ok := d.Held(100 + clock.Time(5*us))
	if !ok || port != 2 || g.Index != 1 {
		t.Errorf("held: %d %v %v", port, g.Index, ok)
	}
}

// TestLinkDownLosesWhatItsIntervalOverlaps: a 1082 B frame takes 88.16 ns on
// 100 Gb/s; arrival = first bit + 88.16 + 500 + 500 ns.
func TestLinkDownLosesWhatItsIntervalOverlaps(t *testing.T) {
	const ser = 1102 * 80
	flight := clock.Time(ser + 500_000) // first bit to last bit at the receiver
	for _, c := range []struct {
		name  string
		first clock.Time // first bit at the sender; outage is [10us, 12us)
		lost  bool
	}{
		{"long before", 1_000_000, false},
		{"last bit exactly at the start", 10_000_000 - flight, false},
		{"last bit one ps into it", 10_000_001 - flight, true},
		{"in the midst", 11_000_000, true},
		{"first bit one ps before its end", 11_999_999, true},
		{"first bit at its end", 12_000_000, false},
	} {
		d := device(t, 2, fault("cut", "link-down", clock.Time(10*us), 2*us, nil))
		for d.Next() <= clock.Time(12*us) {
			d.Step(d.Next())
		}
		f := data(1, 1082)
		got := d.In(c.first+flight+500_000, 1, &f)
		if (got.Drop == record.LinkDown) != c.lost {
			t.Errorf("%s: %v", c.name, got.Drop)
		}
	}
}

func TestLinkStateHoldAndOverlap(t *testing.T) {
	a := fault("a", "link-down", clock.Time(10*us), 10*us, map[string]string{"hold": "5us"})
	b := fault("b", "link-down", clock.Time(15*us), 10*us, nil)
	d := device(t, 0, a, b)
	type st struct{ up, usable bool }
	want := map[clock.Time]st{
		clock.Time(10 * us): {false, false}, clock.Time(15 * us): {false, false},
		clock.Time(20 * us): {false, false}, clock.Time(25 * us): {true, true},
	}
	for d.Next() != clock.Never {
		now := d.Next()
		d.Step(now)
		w := want[now]
		if now != clock.Time(25*us) && d.Up(2) != w.up {
			t.Errorf("at %v up %v", now, d.Up(2))
		}
		if now == clock.Time(25*us) && (!d.Up(2) || !d.Usable(2)) {
			t.Errorf("at %v: up %v usable %v", now, d.Up(2), d.Usable(2))
		}
		if !d.Up(1) {
			t.Error("the other port went down")
		}
	}
	d = device(t, 0, a)
	d.Step(clock.Time(10 * us))
	d.Step(clock.Time(20 * us))
	if !d.Up(2) || d.Usable(2) || d.Next() != clock.Time(25*us) {
		t.Errorf("in hold: up %v usable %v next %v", d.Up(2), d.Usable(2), d.Next())
	}
	d.Step(clock.Time(25 * us))
	if !d.Usable(2) {
		t.Error("not a member after hold")
	}
}

func TestFlapDutyAndOneWay(t *testing.T) {
	d := device(t, 0, fault("fl", "link-flap", 0, 10*us, map[string]string{"period": "4us", "duty": "0.25"}))
	var downs, ups []clock.Time
	for d.Next() != clock.Never {
		now := d.Next()
		for _, e := range d.Step(now) {
			switch e.Phase {
			case LinkFell:
				downs = append(downs, now)
			case LinkRose:
				ups = append(ups, now)
			}
		}
	}
	if len(downs) != 3 || len(ups) != 3 || downs[2] != clock.Time(8*us) || ups[2] != clock.Time(9*us) || !d.Up(2) {
		t.Errorf("downs %v ups %v", downs, ups)
	}
	one := fault("ow", "one-way", 0, 0, map[string]string{"dir": "out"})
	near, far := device(t, 0, one), device(t, 2, one)
	near.Step(0)
	far.Step(0)
	f := data(1, 1082)
	if g := near.In(clock.Time(5*us), 2, &f); g.Drop != 0 || !near.Up(2) || !near.Usable(2) {
		t.Error("the named end lost what arrives")
	}
	if g := far.In(clock.Time(5*us), 1, &f); g.Drop != record.LinkDown {
		t.Error("the far end still hears")
	}
}

func TestDeviceDownBootsAndDrainKeepsLinks(t *testing.T) {
	f := fault("dead", "device-down", clock.Time(us), us, nil)
	f.Port, f.Target = 0, "leaf1"
	d, far := device(t, 0, f), device(t, 2, f)
	d.Step(clock.Time(us))
	far.Step(clock.Time(us))
	if d.Alive() || far.Up(1) || !far.Alive() {
		t.Error("state after the start")
	}
	d.Step(clock.Time(2 * us))
	if d.Alive() || d.Next() != clock.Time(12*us) {
		t.Errorf("boots until %v", d.Next())
	}
	d.Step(clock.Time(12 * us))
	if !d.Alive() || !d.Up(1) {
		t.Error("not back after boot")
	}
	dr := fault("dr", "drain", 0, us, nil)
	dr.Port = 0
	d, far = device(t, 0, dr), device(t, 2, dr)
	d.Step(0)
	far.Step(0)
	if !d.Up(1) || !d.Usable(1) || !far.Up(1) || far.Usable(1) {
		t.Error("drain: the far ends leave, nothing goes down")
	}
	far.Step(clock.Time(us))
	if !far.Usable(1) {
		t.Error("undrained")
	}
}

func TestActiveIsTheLastToStartAndUndoes(t *testing.T) {
	a := fault("a", "rate", 0, 10*us, map[string]string{"to": "10Gbps"})
	b := fault("b", "rate", clock.Time(2*us), 3*us, map[string]string{"to": "1Gbps"})
	d := device(t, 0, a, b)
	at := func(now clock.Time) clock.Rate {
		for d.Next() <= now {
			d.Step(d.Next())
		}
		if s := d.Active(Rate, 2); s != nil {
			return s.Rate
		}
		return 0
	}
	for _, c := range []struct {
		t clock.Duration
		r clock.Rate
	}{{us, 10 * clock.Gbps}, {3 * us, clock.Gbps}, {6 * us, 10 * clock.Gbps}, {11 * us, 0}} {
		if got := at(clock.Time(c.t)); got != c.r {
			t.Errorf("at %v: %v, want %v", c.t, got, c.r)
		}
	}
	out := fault("o", "rate", 0, 0, map[string]string{"to": "10Gbps", "dir": "out"})
	near, far := device(t, 0, out), device(t, 2, out)
	near.Step(0)
	far.Step(0)
	if near.Active(Rate, 2) == nil || far.Active(Rate, 1) != nil {
		t.Error("dir=out changes the named end only")
	}
}

// TestBERAgainstExactValues compares 1-(1-p)^(8·4158) with a computation in
// 400-bit arithmetic; the relative error must stay below 2^-80.
func TestBERAgainstExactValues(t *testing.T) {
	for _, p := range []string{"1e-15", "1e-12", "1e-9", "1e-8", "1e-7", "1e-6", "1e-3"} {
		x, err := parseProb(p)
		if err != nil {
			t.Fatal(err)
		}
		got := fixed(x.anyOf(8 * 4158))
		r, _ := new(big.Rat).SetString(p)
		q := new(big.Float).SetPrec(400).SetRat(new(big.Rat).Sub(big.NewRat(1, 1), r))
		acc := new(big.Float).SetPrec(400).SetInt64(1)
		for range 8 * 4158 {
			acc.Mul(acc, q)
		}
		want := new(big.Float).SetPrec(400).Sub(big.NewFloat(1).SetPrec(400), acc)
		diff, _ := new(big.Float).Quo(new(big.Float).Sub(got, want), want).Float64()
		if math.Abs(diff) > math.Pow(2, -60) {
			t.Errorf("p %s: relative error %g", p, diff)
		}
	}
	// The published frame losses of the dirty fibre (derived values, three digits).
	for p, want := range map[string]float64{"1e-12": 3.33e-8, "1e-8": 3.33e-4, "1e-7": 3.32e-3, "1e-6": 3.27e-2} {
		x, _ := parseProb(p)
		got, _ := fixed(x.anyOf(8 * 4158)).Float64()
		if math.Abs(got/want-1) > 0.01 {
			t.Errorf("p %s: %g, want about %g", p, got, want)
		}
	}
}

func fixed(p prob) *big.Float {
	hi := new(big.Int).Lsh(new(big.Int).SetUint64(p.hi), 64)
	n := hi.Add(hi, new(big.Int).SetUint64(p.lo))
	f := new(big.Float).SetPrec(400).SetInt(n)
	return f.SetMantExp(f, -128)
}

func TestLossRateAndIndependence(t *testing.T) {
	f := fault("l", "loss", 0, 0, map[string]string{"probability": "1/100", "dir": "out"})
	d := device(t, 0, f)
	d.Step(0)
	var o sink
	var first []uint32
	for i := uint32(1); i <= 100_000; i++ {
		x := data(i, 100)
		if d.Send(clock.Time(i), 2, &x, &o).Drop != 0 {
			first = append(first, i)
		}
	}
	if n := len(first); n < 900 || n > 1100 { // 1000 ± 3 sigma (31.5)
		t.Errorf("%d of 100000 lost", n)
	}
	// Another fault's traffic and another port's frames change nothing.
	g := fault("other", "loss", 0, 0, map[string]string{"probability": "0.5", "dir": "out"})
	g.Port, g.Target = 1, "leaf1:1"
	d = device(t, 0, f, g)
	d.Step(0)
	k := 0
	for i := uint32(1); i <= 100_000; i++ {
		y, x := data(i, 100), data(i, 100)
		d.Send(clock.Time(i), 1, &y, &o)
		if d.Send(clock.Time(i), 2, &x, &o).Drop != 0 {
			if first[k] != i {
				t.Fatalf("loss %d is frame %d, was %d", k, i, first[k])
			}
			k++
		}
	}
}

func TestEvery(t *testing.T) {
	f := fault("l", "loss", 0, 0, map[string]string{"every": "256", "dir": "out"})
	d := device(t, 0, f)
	d.Step(0)
	var o sink
	for i := uint32(1); i <= 1024; i++ {
		x := data(i, 100)
		if lost := d.Send(clock.Time(i), 2, &x, &o).Drop != 0; lost != (i%256 == 0) {
			t.Fatalf("frame %d: %v", i, lost)
		}
	}
}

func TestOverlappingFrameFaults(t *testing.T) {
	a := fault("a", "duplicate", 0, 0, map[string]string{"dir": "out"})
	b := fault("b", "delay", 0, 0, map[string]string{"dir": "out", "by": "1us"})
	c := fault("c", "mark-ce", 0, 0, map[string]string{"dir": "out"})
	d := device(t, 0, a, b, c)
	d.Step(0)
	f, o := data(1, 100), sink{}
	f.At = 5000
	s := d.Send(0, 2, &f, &o)
	if s.Extra != 1 || len(o.late) != 2 || len(o.sent) != 0 || o.late[1].ECN() != wire.CE || o.late[0].At != 5000+clock.Time(us) {
		t.Errorf("%+v %d %d", s, len(o.late), len(o.sent))
	}
}

func TestInjectForgesAtItsTimes(t *testing.T) {
	f := fault("i", "inject", clock.Time(us), 0, map[string]string{"opcode": "send-only", "psn": "150", "size": "100B", "count": "3", "interval": "2us"})
	f.Target, f.Port, f.Dev = "rnic1:1", 1, 1
	d := device(t, 1, f)
	var at []clock.Time
	for d.Next() != clock.Never {
		now := d.Next()
		for _, e := range d.Step(now) {
			if e.Phase == Forge {
				at = append(at, now)
				g := e.Spec.Forge.Frame
				if g.Src != 1 || g.Dst != 2 || g.DstQPN() != 0x12 || g.PSN() != 150 || g.Len != 162 || !g.Has(wire.FlagAckReq) {
					t.Errorf("forged %+v len %d", g, g.Len)
				}
			}
		}
	}
	if len(at) != 3 || at[2] != clock.Time(5*us) {
		t.Errorf("at %v", at)
	}
}

// TestInjectForgesPauses: PFC for the lossless priorities, for named ones and for
// none, and the 802.3x PAUSE.
func TestInjectForgesPauses(t *testing.T) {
	for _, c := range []struct {
		params map[string]string
		kind   wire.Kind
		a, b   uint64
		vector uint32
	}{
		{map[string]string{"opcode": "pfc", "priorities": "1", "quanta": "7"}, wire.KindPFC, 7 << 16, 0, 2},
		{map[string]string{"opcode": "pfc", "priorities": "none", "quanta": "7"}, wire.KindPFC, 0, 0, 0},
		{map[string]string{"opcode": "pause"}, wire.KindPause, 65535, 0, 0},
	} {
		f := fault("i", "inject", 0, 0, c.params)
		f.Target, f.Port, f.Dev = "rnic1:1", 1, 1
		s, err := Compile(pairPlan(), &f, 0)
		if err != nil {
			t.Fatalf("%v: %v", c.params, err)
		}
		if g := s.Forge.Frame; g.Kind != c.kind || g.Len != wire.PFCFrame || g.A != c.a || g.B != c.b || g.D != c.vector {
			t.Errorf("%v forges %+v", c.params, g)
		}
	}
	f := fault("i", "inject", 0, 0, map[string]string{"opcode": "pfc", "priorities": "none,3"})
	if _, err := Compile(pairPlan(), &f, 0); err == nil {
		t.Error("none among priorities accepted")
	}
}

func TestSnapshotIsCanonical(t *testing.T) {
	build := func() *Device {
		r := fault("r", "reorder", 0, 0, map[string]string{"dir": "in"})
		l := fault("l", "loss", 0, 0, map[string]string{"probability": "0.5"})
		return device(t, 0, r, l, fault("cut", "link-down", clock.Time(us), us, nil))
	}
	d := build()
	d.Step(0)
	d.Step(clock.Time(us))
	var o sink
	for i := uint32(1); i < 50; i++ {
		f := data(i, 100)
		d.In(clock.Time(us)*10, 2, &f)
		d.Send(clock.Time(us), 2, &f, &o)
	}
	var w snap.Writer
	d.Snapshot(&w)
	e := build()
	r := snap.Reader{B: w.B}
	e.Restore(&r)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	var w2 snap.Writer
	e.Snapshot(&w2)
	if string(w.B) != string(w2.B) {
		t.Error("snapshot differs after restore")
	}
	f, g := data(60, 100), data(60, 100)
	if a, b := d.In(clock.Time(20*us), 2, &f), e.In(clock.Time(20*us), 2, &g); a != b {
		t.Errorf("verdicts differ: %+v %+v", a, b)
	}
}

func TestCompileRefusesWithWhatIsAllowed(t *testing.T) {
	for _, c := range []struct{ kind, key, val string }{
		{"rate", "to", "fast"},
		{"ber", "to", "2"},
		{"loss", "probability", "-1"},
		{"mtu", "size", "1500"},
		{"dscp", "to", "64"},
		{"delay", "by", "5"},
		{"corrupt", "field", "tcp"},
		{"route", "via", "leaf1:9"},
		{"link-flap", "duty", "1"},
		{"blackhole", "bucket", "4/4"},
		{"drop", "colour", "red"},
		{"inject", "opcode", "shout"},
		{"pause-storm", "priorities", "8"},
		{"drop", "dir", "up"},
		{"nonsense", "", ""},
	} {
		f := fault("x", c.kind, 0, 0, map[string]string{"period": "1ms", "to": "1", "by": "1us", c.key: c.val})
		if _, err := Compile(pairPlan(), &f, 0); err == nil {
			t.Errorf("%s %s=%s accepted", c.kind, c.key, c.val)
		}
	}
}

func FuzzCompile(f *testing.F) {
	f.Add(uint8(3), "to", "10Gbps", "every", "3", int64(0), int64(5))
	f.Add(uint8(7), "by", "1us", "dir", "in", int64(9), int64(0))
	f.Fuzz(func(t *testing.T, kind uint8, k1, v1, k2, v2 string, at, dur int64) {
		ft := fault("f", kindNames[int(kind)%len(kindNames)], clock.Time(at), clock.Duration(dur), map[string]string{k1: v1, k2: v2})
		plan := pairPlan()
		s, err := Compile(plan, &ft, 0)
		if err != nil {
			return
		}
		d := NewDevice(plan, 0, []Spec{s})
		var o sink
		for range 20 {
			now := d.Next()
			if now == clock.Never {
				break
			}
			d.Step(now)
			x := data(1, 1082)
			d.Send(now, 2, &x, &o)
			d.In(now, 2, &x)
		}
	})
}

func TestNoAllocationsOnTheHotPath(t *testing.T) {
	f := fault("l", "loss", 0, 0, map[string]string{"probability": "1e-9"})
	b := fault("b", "ber", 0, 0, map[string]string{"to": "1e-12"})
	d := device(t, 0, f, b)
	d.Step(0)
	x := data(1, 4158)
	var o null
	if n := testing.AllocsPerRun(100, func() {
		d.Send(1, 2, &x, o)
		d.In(1, 2, &x)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

type null struct{}

func (null) Send(int, *wire.Frame)     {}
func (null) SendLate(int, *wire.Frame) {}
