package fault

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/topology"
)

// Spec is one fault, compiled: everything a device needs to act on it, without
// text. It never changes.
type Spec struct {
	Index int32 // in the run's fault list
	Name  string
	Kind  Kind
	Key   uint64 // keys its random draws: hash of seed and name
	At    clock.Time
	Until clock.Time // Never when it has no `for`
	Count uint64     // hits after which it ends; 0 = unlimited
	Every uint64     // only each n-th frame that matches; 0 = each
	Dir   Dir

	Dev    int32 // the named device
	Port   int   // 0 = all ports, or the device itself
	Places []Place

	Match match
	Prob  prob // of loss, or of one bit under ber
	Field Field
	By    clock.Duration

	Rate     clock.Rate // rate: to; slow-receiver: drain
	Size     int64      // mtu, buffer
	Period   clock.Duration
	DownFor  clock.Duration // of each flap period
	Hold     clock.Duration
	Detect   clock.Duration // link-down: until the ends notice
	Withdraw clock.Duration // link-down, device-down: until switches farther away avoid it
	Boot     clock.Duration // device-down
	Prios    uint8          // mask
	Seed     uint32         // hash
	HashName string
	To       uint32   // route: RNIC number; dscp: value
	Via      []uint16 // route: port numbers; none = no route
	DstRNIC  uint32   // blackhole
	Bucket   int      // blackhole: -1 = none
	Buckets  int      // modulo of Bucket
	QPs      []uint32
	Wait     clock.Duration
	Forge    *Forged
}

// Place is a port that a fault touches. Peer is set at the far ends of cables
// of the named port or device.
type Place struct {
	Dev  int32
	Port int // 0 = the device; remote = a switch that only learns of it
	Peer bool
}

// remote marks the place of a switch that is not at the cable: routing tells it.
const remote = -1

// DefaultWithdraw is how long routing takes to tell every switch of a failure:
// detection and a handful of hops of a distance-vector protocol.
const DefaultWithdraw = 10 * clock.Millisecond

// Active reports whether the fault's time covers t.
func (s *Spec) Active(t clock.Time) bool { return s.At <= t && t < s.Until }

// Has reports whether a QP is meant: all are when none is listed.
func (s *Spec) Has(qpn uint32) bool { return len(s.QPs) == 0 || slices.Contains(s.QPs, qpn) }

// maxTime bounds instants and lengths, so that sums of some of them do not
// overflow: 13 days, longer than any run.
const maxTime = clock.Never >> 3

// Compile turns a planned or live fault into a Spec. index is its place in the
// run's fault list. The plan has validated names and words; what remains wrong
// is reported with fault, parameter, value and what is allowed.
func Compile(plan *topology.Plan, f *topology.Fault, index int32) (Spec, error) {
	k, ok := ParseKind(f.Kind)
	if !ok {
		return Spec{}, fmt.Errorf("%s: fault %s: kind %q is not known, allowed: %s", f.Pos, f.Name, f.Kind, strings.Join(Kinds(), " "))
	}
	s := Spec{
		Index: index, Name: f.Name, Kind: k, Key: clock.HashString(plan.Seed, f.Name),
		At: f.At, Until: clock.Never, Count: uint64(max(f.Count, 0)), Dev: f.Dev, Port: f.Port, Bucket: -1,
	}
	if f.At < 0 || f.For < 0 || f.At > maxTime || f.For > clock.Duration(maxTime) {
		return Spec{}, fmt.Errorf("%s: fault %s: at %v for %v: allowed 0 to %v", f.Pos, f.Name, f.At, f.For, maxTime)
	}
	if f.For > 0 {
		s.Until = f.At.Add(f.For)
	}
	if int(f.Dev) >= len(plan.Devices) {
		return Spec{}, fmt.Errorf("%s: fault %s: target %q: no such device", f.Pos, f.Name, f.Target)
	}
	s.Match = compileMatch(plan, f)
	p := params{f: f, plan: plan, used: map[string]bool{}}
	if s.Dir = p.dir(); s.Kind == OneWay && s.Dir == Both {
		s.Dir = Out
	}
	if k == DSCP && s.Dir == Both { // before a switch classifies, after an RNIC marks
		if s.Dir = In; f.Dev >= 0 && plan.Devices[f.Dev].Kind == topology.RNIC {
			s.Dir = Out
		}
	}
	p.read(&s)
	if err := p.finish(); err != nil {
		return Spec{}, err
	}
	s.Places = places(plan, f, &s)
	if len(s.Places) == 0 {
		return Spec{}, fmt.Errorf("%s: fault %s: target %q names neither a device, a port nor a flow", f.Pos, f.Name, f.Target)
	}
	return s, nil
}

// places lists the ports a fault touches: the named ones and, for faults of
// cables, the ones at their far ends.
func places(plan *topology.Plan, f *topology.Fault, s *Spec) []Place {
	var out []Place
	for _, d := range f.Devs {
		out = append(out, Place{Dev: d})
	}
	if out != nil {
		return out
	}
	if f.Dev < 0 {
		for _, id := range f.Match.FlowIDs {
			dev := plan.RNICs[plan.Flows[id].From-1]
			out = append(out, Place{Dev: dev})
		}
		return sortPlaces(out)
	}
	d := &plan.Devices[f.Dev]
	if f.Port == 0 || s.Kind == DeviceDown || s.Kind == Drain {
		out = append(out, Place{Dev: f.Dev})
	} else {
		out = append(out, Place{Dev: f.Dev, Port: f.Port})
	}
	if !s.Kind.onLink() {
		return out
	}
	for i := range d.Ports {
		if p := &d.Ports[i]; f.Port == 0 || p.Num == f.Port || s.Kind == DeviceDown || s.Kind == Drain {
			out = append(out, Place{Dev: p.Peer, Port: p.PeerPort, Peer: true})
		}
	}
	if s.withdraws() && s.Until > s.At.Add(s.Withdraw) {
		out = append(out, remotes(plan, out)...)
	}
	return sortPlaces(out)
}

// withdraws reports whether routing tells other switches of the fault.
func (s *Spec) withdraws() bool { return s.Kind == LinkDown || s.Kind == DeviceDown }

// remotes are the switches that are not at any of the cables.
func remotes(plan *topology.Plan, near []Place) []Place {
	at := make([]bool, len(plan.Devices))
	for _, p := range near {
		at[p.Dev] = true
	}
	var out []Place
	for i := range plan.Devices {
		if plan.Devices[i].Switch != nil && !at[i] {
			out = append(out, Place{Dev: int32(i), Port: remote})
		}
	}
	return out
}

// remoteOn reports whether a device only learns of the fault.
func (s *Spec) remoteOn(dev int32) bool {
	for _, p := range s.Places {
		if p.Dev == dev {
			return p.Port == remote
		}
	}
	return false
}

func sortPlaces(p []Place) []Place {
	slices.SortFunc(p, func(a, b Place) int {
		if a.Dev != b.Dev {
			return int(a.Dev) - int(b.Dev)
		}
		return a.Port - b.Port
	})
	return slices.Compact(p)
}

// On reports whether the fault touches a device at all.
func (s *Spec) On(dev int32) bool {
	return slices.ContainsFunc(s.Places, func(p Place) bool { return p.Dev == dev })
}

// at finds the fault's role at a port of a device; peer tells that the port is
// a far end.
func (s *Spec) at(dev int32, port int) (peer, ok bool) {
	for _, p := range s.Places {
		if p.Dev == dev && (p.Port == port || p.Port == 0) {
			return p.Peer, true
		}
	}
	return false, false
}
