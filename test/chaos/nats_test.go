package chaos

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/rocemu/rocemu/coord"
)

// One of three NATS servers, joined by TLS and open to key holders only, is
// killed in the middle of a run, then comes back and another one goes.
func TestOneOfThreeServers(t *testing.T) {
	dear(t)
	want := alone(t, long.plan(t))
	m := startMachines(t, 3, 1, 2, nil)
	id := m.submit(long.plan(t), 3, func(s *coord.RunSpec) { s.CkptMS = 400 })
	m.during("a checkpoint", func(r *coord.RunStatus) bool { return r.Ckpt > 0 })
	for i := range 2 {
		m.kill(natsName(i), syscall.SIGKILL)
		t.Logf("without %s windows advance again after %v", natsName(i), m.recovered(id))
		m.nats(i)
		m.recovered(id)
	}
	got, run, cost := m.result(id, nil)
	same(t, got, want)
	t.Logf("%d windows, %.0f/s, %d moves, %d checkpoints", cost.Windows, cost.WindowsPerS, run.Moves, len(run.Ckpts))
}

// Ten seconds of SIGSTOP, each victim in its own run: whoever leads, a member
// that does not, a NATS server.
func TestStopped(t *testing.T) {
	dear(t)
	want := alone(t, long.plan(t))
	m := newMachines(t, 3, 1)
	for _, who := range []string{"leader", "follower", "nats"} {
		t.Run(who, func(t *testing.T) {
			id := m.submit(long.plan(t), 4, func(s *coord.RunSpec) { s.ID, s.CkptMS = fmt.Sprint("stop-", who), 400 })
			m.progressed(id, 500)
			leader := m.until("a leader", func(s *coord.Status) bool { return s.Leader != "" }).Leader
			victim := map[string]string{"leader": leader, "follower": "e1", "nats": natsName(0)}[who]
			m.kill(victim, syscall.SIGSTOP)
			if who != "nats" {
				t.Logf("without %s windows advance again after %v", victim, m.recovered(id))
			}
			time.Sleep(10 * time.Second)
			m.kill(victim, syscall.SIGCONT)
			got, run, _ := m.result(id, nil)
			same(t, got, want)
			t.Logf("%d moves", run.Moves)
			m.until("all are up again", func(s *coord.Status) bool {
				up := 0
				for _, n := range s.Nodes {
					if n.Up {
						up++
					}
				}
				return s.Quorum && up == 4
			})
		})
	}
}
