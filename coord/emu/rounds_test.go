package emu_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/coord/emu"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

// wide has enough devices that processes run it in rounds.
const wide = `schema: 1
name: wide
seed: 3
topology: {spines: 4, leaves: 16, servers: 32}
workload:
  - {name: perm, pattern: permutation, shift: 33, verb: write, size: 60KB}
  - {name: hot, pattern: incast, to: rnic7, from: "rnic100..rnic130", verb: write, size: 40KB}
faults:
  - {name: dirt, kind: loss, target: "leaf2:1", at: 0us, probability: 1e-2}
`

// A fault at an instant that the run does not come to is refused with the reason.
func TestFaultAfterTheEnd(t *testing.T) {
	for _, x := range []struct{ run, want string }{
		{"run: {until: 200us}\n", "the run ends at 200us (run.until) at the latest and does not come to 200us"},
		{"run: {limit: 200us}\n", "the run ends at 200us (run.limit) at the latest and does not come to 200us"},
	} {
		s := coord.RunSpec{Files: []coord.File{{Name: "wide.yaml", Text: wide + x.run}}}
		f := coord.Fault{Name: "cut", Text: "link-down leaf1:1", Want: clock.Time(200 * clock.Microsecond), Firm: true}
		if err := new(emu.Model).CheckFaults(&s, nil, []coord.Fault{f}); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", x.run, err)
		}
		f.Want--
		if err := new(emu.Model).CheckFaults(&s, nil, []coord.Fault{f}); err != nil {
			t.Errorf("%sbefore it: %v", x.run, err)
		}
	}
}

// A fabric in rounds gives the result and the records of one process, also
// after a process was killed and its share went back to a checkpoint, which
// lies between two rounds.
func TestRoundsAfterCrash(t *testing.T) {
	p, _, err := topology.LoadBytes("wide.yaml", []byte(wide))
	if err != nil {
		t.Fatal(err)
	}
	if sim.Stride(p) < 8 {
		t.Fatalf("stride %d: no rounds", sim.Stride(p))
	}
	var want, got []record.Record
	one, err := sim.Run(t.Context(), p, sim.Options{Workers: 1, Records: func(b []record.Record) { want = append(want, b...) }})
	if err != nil {
		t.Fatal(err)
	}
	c := startWith(t, apart, "a", "b", "c", "d")
	id, err := c.cl.Submit(c.Context(), coord.RunSpec{Files: []coord.File{{Name: "wide.yaml", Text: wide}}, Members: 2, Batch: true, Pause: true, CkptMS: 100})
	c.must(err)
	s := c.beyondCheckpoint(func() {})
	c.nodes[s.Slots[1].Owner]()
	c.must(c.cl.Pace(c.Context(), coord.Pace{Den: 1}))
	run, err := c.cl.Wait(c.Context(), id, nil)
	c.must(err)
	if run.Phase != coord.Ended || run.Moves == 0 || len(run.Ckpts) == 0 {
		t.Fatalf("%v %s: %d moves, %d checkpoints", run.Phase, run.Why, run.Moves, len(run.Ckpts))
	}
	m := emu.NewNotes(p, len(run.Slots))
	m.Records = func(b []record.Record) { got = append(got, b...) }
	c.must(m.Collect(run, c.fetch))
	parts, err := emu.Parts(run, c.fetch)
	c.must(err)
	res, _, _, err := emu.ResultOf(p, run, m, parts)
	c.must(err)
	if res.Digest != one.Digest || res.Verdict != one.Verdict || res.VirtualNS != one.VirtualNS {
		t.Errorf("%s at %v, digest %s; alone %s at %v, %s", res.Verdict, res.VirtualNS, res.Digest, one.Verdict, one.VirtualNS, one.Digest)
	}
	if len(want) < 50 || !slices.Equal(got, want) {
		t.Errorf("%d records, alone %d, or others", len(got), len(want))
	}
	if res.Engine.Windows == one.Engine.Windows {
		t.Errorf("%d windows as alone: no rounds between processes", res.Engine.Windows)
	}
}
