package actortest

import (
	"fmt"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
)

// Spec describes a synthetic fabric; the zero values of Window and Latency get
// defaults.
type Spec struct {
	Seed    uint64
	Relays  int            // at least 2
	Cables  int            // extra cables on top of a ring
	Private int            // of the relays, how many hang on one other by one or two cables
	Even    bool           // no cycle of odd length; Relays - Private must be even
	Burst   int            // tokens each relay starts
	Latency clock.Duration // smallest latency of a cable; 0 = 500 ns
	Window  clock.Duration // 0 = Latency
}

// Fabric is the actors and the engine's description of them.
type Fabric struct {
	Config actors.Config
	Relays []*Relay
	Window clock.Duration // the largest legal window
}

// New builds the fabric: a pure function of the spec.
func New(s Spec) *Fabric {
	if s.Latency == 0 {
		s.Latency = 500 * clock.Nanosecond
	}
	if s.Window == 0 {
		s.Window = s.Latency
	}
	f := &Fabric{Window: s.Latency, Relays: make([]*Relay, s.Relays)}
	f.Config = actors.Config{
		Seed: s.Seed, Window: s.Window, Settle: 4 * s.Latency,
		Limit: clock.Time(60 * clock.Second), Until: clock.Never, Stall: clock.Second,
		Names: make([]string, s.Relays), Cables: make([][]actors.Ports, s.Relays),
	}
	for i := range f.Relays {
		name := fmt.Sprintf("relay%d", i+1)
		f.Config.Names[i] = name
		r := &Relay{id: int32(i), seed: s.Seed, burst: s.Burst, chain: actors.NewChain(s.Seed, name)}
		r.arm(clock.Time(clock.Duration(clock.Mix(s.Seed, uint64(i), 1)%3)*Grid), clock.Mix(s.Seed, uint64(i), 2)|1)
		f.Relays[i] = r
	}
	ring := s.Relays - s.Private
	for i := range ring {
		f.cable(i, (i+1)%ring, s)
	}
	for i := range s.Cables {
		a := int(clock.Mix(s.Seed, uint64(i), 11) % uint64(ring))
		b := int(clock.Mix(s.Seed, uint64(i), 12) % uint64(ring))
		if a != b && (!s.Even || (a+b)%2 == 1) {
			f.cable(a, b, s)
		}
	}
	for i := ring; i < s.Relays; i++ {
		hub := int(clock.Mix(s.Seed, uint64(i), 14) % uint64(ring))
		for range 1 + i%2 {
			f.cable(i, hub, s)
		}
	}
	return f
}

func (f *Fabric) cable(a, b int, s Spec) {
	c := f.Config.Cables
	c[a] = append(c[a], actors.Ports{Peer: int32(b)})
	c[b] = append(c[b], actors.Ports{Peer: int32(a)})
	pa, pb := len(c[a]), len(c[b])
	c[a][pa-1].PeerPort, c[b][pb-1].PeerPort = int32(pb), int32(pa)
	lat := s.Latency + clock.Duration(clock.Mix(s.Seed, uint64(a*1000+b), 13)%4)*Grid
	for _, i := range []int{a, b} {
		f.Relays[i].lat = append(f.Relays[i].lat, lat)
		f.Relays[i].free = append(f.Relays[i].free, 0)
	}
}

// Engine makes an engine over the relays that host says; nil hosts all.
func (f *Fabric) Engine(workers int, host func(d int32) bool) (*actors.Engine, error) {
	hosted := make([]actors.Actor, len(f.Relays))
	for i, r := range f.Relays {
		if host == nil || host(int32(i)) {
			hosted[i] = r
		}
	}
	return actors.New(f.Config, hosted, workers)
}
