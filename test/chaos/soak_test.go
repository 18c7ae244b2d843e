package chaos

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/report"
)

var seed = flag.Uint64("seed", 1, "of random harm")

// soak is a long life of one cluster: run after run, with harm from a seed.
type soak struct {
	*machines
	t    *testing.T
	r    *rand.Rand
	done map[string]int
}

// roomy has devices enough that batch runs take rounds, and takes as long.
var roomy = fabric{file: "pod.yaml", sets: []string{
	"topology.servers=64", "workload.replicate.shift=64", "workload.replicate.size=2MB", "expect=[]",
}}

// keeper is never killed, so that what it leaks adds up.
const keeper = "c1"

// TestSoak runs fabrics one after another on one cluster for SOAK (as in 1h)
// and kills, stops, wipes and moves what hosts them. Every digest must be that
// of one process, and the process that lives through it all must not grow.
func TestSoak(t *testing.T) {
	span, err := time.ParseDuration(os.Getenv("SOAK"))
	if err != nil {
		t.Skip("takes long; SOAK=1h runs it for an hour")
	}
	fabrics := []fabric{long, {file: "pod.yaml"}, {file: "incast.yaml"}, roomy}
	var want []*report.Result
	for _, f := range fabrics {
		want = append(want, alone(t, f.plan(t)))
	}
	s := &soak{machines: newMachines(t, 3, 2), t: t, r: rand.New(rand.NewPCG(*seed, 0x50A6)), done: map[string]int{}}
	t.Logf("seed %d", *seed)
	var levels []level
	n := 0
	for end := time.Now().Add(span); time.Now().Before(end) || n < 5; n++ {
		i := s.r.IntN(len(fabrics))
		id := s.submit(fabrics[i].plan(t), 1+s.r.IntN(5), func(x *coord.RunSpec) {
			x.ID, x.Batch, x.CkptMS = fmt.Sprint("soak-", n), s.r.IntN(2) == 0, 200+s.r.IntN(800)
			if x.Batch {
				s.done[fmt.Sprint("batch of fabric ", i)]++
			}
		})
		ctx, calm := context.WithCancel(t.Context())
		harmed := make(chan struct{})
		go func() { defer close(harmed); s.harm(ctx) }()
		got, _, _ := s.result(id, nil)
		calm()
		<-harmed
		if same(t, got, want[i]); t.Failed() {
			t.Fatalf("run %d of %s differs, after %v", n, fabrics[i].file, s.done)
		}
		levels = append(levels, s.level())
	}
	t.Logf("%d runs, harm %v", n, s.done)
	base, last := bounds(levels)
	t.Logf("%s in its first runs at most %+v, in its last at least %+v", keeper, base, last)
	if last.fds > base.fds+16 || last.goroutines > base.goroutines+32 || last.rss > base.rss+64<<20 {
		t.Errorf("%s grew from %+v to %+v", keeper, base, last)
	}
}

// bounds are the most of the first quarter of the levels, 20 of them if there are
// so many, and the least of as many last ones. What a run takes varies with the
// slots that the keeper gets; what leaks is in the least, too.
func bounds(l []level) (most, least level) {
	k := min(max(len(l)/4, 1), 20)
	most, least = l[0], l[len(l)-1]
	for i := range k {
		a, b := l[i], l[len(l)-1-i]
		most = level{max(most.fds, a.fds), max(most.goroutines, a.goroutines), max(most.rss, a.rss)}
		least = level{min(least.fds, b.fds), min(least.goroutines, b.goroutines), min(least.rss, b.rss)}
	}
	return most, least
}

// harm does one thing after another until ctx ends, and makes it good.
func (s *soak) harm(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(200+s.r.IntN(3000)) * time.Millisecond):
		}
		victim := []string{"c1", "c2", "c3", "e1", "e2"}[s.r.IntN(5)]
		switch k := s.r.IntN(10); {
		case k < 3 && victim != keeper:
			s.again("kill", victim, false)
		case k < 4 && victim[0] == 'e':
			s.again("wipe", victim, true)
		case k < 6:
			s.pause(victim, time.Duration(s.r.IntN(4000))*time.Millisecond)
		case k < 7:
			s.pause(natsName(0), time.Duration(s.r.IntN(2000))*time.Millisecond)
		case k < 8:
			s.done["kill nats"]++
			s.kill(natsName(0), syscall.SIGKILL)
			time.Sleep(time.Duration(s.r.IntN(500)) * time.Millisecond)
			s.nats(0)
		default:
			mctx, cancel := context.WithTimeout(ctx, 3*time.Second)
			if _, err := s.c.Move(mctx, s.r.IntN(3), victim); err == nil {
				s.done["move"]++
			}
			cancel()
		}
	}
}

// again kills a process and starts it again, at once or after it was missed.
func (s *soak) again(what, name string, wipe bool) {
	s.done[what]++
	s.kill(name, syscall.SIGKILL)
	if wipe {
		if err := os.RemoveAll(filepath.Join(s.dir, name)); err != nil {
			s.t.Error(err)
		}
	}
	time.Sleep(time.Duration(s.r.IntN(4000)) * time.Millisecond)
	if name[0] == 'c' {
		s.emud(0, name, "--coordinator", "--bootstrap-expect", "3")
	} else {
		s.emud(0, name)
	}
}

func (s *soak) pause(name string, d time.Duration) {
	s.done["stop"]++
	s.kill(name, syscall.SIGSTOP)
	time.Sleep(d)
	s.kill(name, syscall.SIGCONT)
}

// level is what a process takes.
type level struct {
	fds, goroutines int
	rss             int64 // now, bytes
}

// level measures the keeper between two runs.
func (s *soak) level() (l level) {
	time.Sleep(500 * time.Millisecond) // what the run left is closed
	f, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.procs[keeper].Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	l.fds = len(f)
	l.rss = s.resident(keeper)
	s.until("the level of "+keeper, func(x *coord.Status) bool {
		for _, n := range x.Nodes {
			if n.Name == keeper && n.Seen < 1 {
				l.goroutines = n.Routines
			}
		}
		return l.goroutines > 0
	})
	return l
}

// resident is the memory that a process has now; what the ledger's nodes tell is
// their peak.
func (s *soak) resident(name string) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.procs[name].Process.Pid))
	var size, pages int64
	if err == nil {
		_, err = fmt.Sscan(string(b), &size, &pages)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
