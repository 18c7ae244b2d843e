package coord

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/rocemu/rocemu/internal/need"
)

// trio is three voters that hear of each other.
type trio struct {
	*testing.T
	dirs map[string]string
	open map[string]*consensus
}

func (x *trio) start(name string) {
	x.Helper()
	if x.dirs[name] == "" {
		x.dirs[name] = x.TempDir()
	}
	timing := Timing{200 * time.Millisecond, 100 * time.Millisecond, 5 * time.Millisecond}
	c, err := openRaft(raftConfig{name: name, dir: x.dirs[name], addr: "127.0.0.1:0", timing: timing, log: hclog.NewNullLogger()}, NewReplica())
	if err != nil {
		x.Fatal(err)
	}
	x.open[name] = c
	for n, o := range x.open {
		o.heard(name, c.told())
		c.heard(n, o.told())
	}
}

func (x *trio) leader() *consensus {
	x.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for _, c := range x.open {
			if c.leads() && c.raft.VerifyLeader().Error() == nil {
				return c
			}
		}
	}
	x.Fatal("no leader within 20 s")
	return nil
}

// settled waits until all follow one leader and have all that it has.
func (x *trio) settled() {
	x.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		l, all := x.leader(), true
		for _, c := range x.open {
			_, id := c.raft.LeaderWithID()
			all = all && x.open[string(id)] == l && c.raft.AppliedIndex() >= l.raft.CommitIndex()
		}
		if all {
			return
		}
	}
	x.Fatal("not all follow one leader within 20 s")
}

// sockets counts those of this process.
func sockets(t *testing.T) (n int) {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		need.Missing(t, "there is no /proc to count sockets in: "+err.Error())
	}
	for _, f := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// A coordinator that starts again has another port; connections to its former
// ones must not stay with those who live on. Not parallel: it counts sockets.
func TestRaftKeepsNoConnectionToTheGone(t *testing.T) {
	SkipRaftRace(t)
	x := &trio{t, map[string]string{}, map[string]*consensus{}}
	voters := map[string]string{}
	for _, n := range []string{"c1", "c2", "c3"} {
		x.start(n)
		voters[n] = x.open[n].told()
	}
	defer func() {
		for _, c := range x.open {
			c.kill()
		}
	}()
	if err := x.open["c1"].bootstrap(voters); err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		victim := []string{"c2", "c3"}[i%2]
		x.settled()
		_ = x.leader().raft.LeadershipTransfer().Error()
		x.open[victim].kill()
		delete(x.open, victim)
		x.start(victim)
		for end := time.Now().Add(20 * time.Second); ; { // whoever leads now may lose the lead over it
			err := x.leader().addVoter(victim, x.open[victim].told())
			if err == nil {
				break
			}
			if time.Now().After(end) {
				t.Fatal(victim, err)
			}
		}
	}
	// Each of six directions has two pooled and a pipeline or so, with two
	// ends here; three listen. What is being closed goes within a moment, what is
	// kept with those who are gone never.
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		n := sockets(t)
		if n <= 6*3*2+3 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d sockets after 12 restarts", n)
		}
	}
}
