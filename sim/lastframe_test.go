package sim_test

import (
	"context"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/sim"
)

// TestLostFrameEndsTheRun: the last thing that happens is that a frame is lost
// where it arrives, while a storm goes on. The run ends behind that, at the same
// instant however it is cut into windows.
func TestLostFrameEndsTheRun(t *testing.T) {
	p := parse(t, `schema: 1
name: lost-last
seed: 780
run: {until: idle}
topology: {spines: 3, leaves: 2, servers: 2}
switches: {all: {pfc: {priorities: [3], quanta: 8}}}
rnics: {all: {qp: {timeout: 2}}}
workload:
  - {name: q2, from: rnic4, to: rnic3, verb: read, size: 65536B}
faults:
  - {name: x1, kind: rx-overflow, target: "rnic4"}
  - {name: x3, kind: pause-storm, target: "spine1:1"}
`)
	want, err := sim.Run(context.Background(), p, sim.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	single, err := sim.Run(context.Background(), p, sim.Options{Workers: 1, Between: func(clock.Time, uint64) {}})
	if err != nil {
		t.Fatal(err)
	}
	q := *p
	q.Window /= 3
	small, err := sim.Run(context.Background(), &q, sim.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if single.Digest != want.Digest || small.Digest != want.Digest || single.VirtualNS != want.VirtualNS {
		t.Errorf("in rounds %s at %v, in windows %s at %v, in smaller ones %s at %v",
			want.Digest, want.VirtualNS, single.Digest, single.VirtualNS, small.Digest, small.VirtualNS)
	}
}
