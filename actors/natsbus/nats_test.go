package natsbus

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/rocemu/rocemu/actors/actortest"
	"github.com/rocemu/rocemu/clock"
)

func dial(t testing.TB, url, name string) *Conn {
	t.Helper()
	c, err := Dialer{URL: url, Name: name, Wait: 5 * time.Second}.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestDigestOverNATS(t *testing.T) {
	srv, err := StartServer(ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Shutdown()
	s := testSpec(12)
	want, _ := actortest.New(s).Oracle()
	for _, procs := range []int{2, 3, 5} {
		var ps []*proc
		for i := range procs {
			ps = append(ps, join(t, dial(t, srv.ClientURL(), fmt.Sprint("p", i)), s, i, procs, func(c *Config) { c.Run = fmt.Sprint("n", procs) }))
		}
		if g, st := finish(t, ps); g != want {
			t.Errorf("%d processes: digest %v, oracle %v; %+v", procs, g, want, st)
		}
	}
}

// The only server is shut down and started again in the middle of the run.
func TestServerRestart(t *testing.T) {
	srv, err := StartServer(ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	port := srv.Addr().String()
	var n int
	fmt.Sscanf(port[len("127.0.0.1:"):], "%d", &n)
	s := testSpec(13)
	s.Burst = 150
	want, _ := actortest.New(s).Oracle()
	ps := []*proc{join(t, dial(t, srv.ClientURL(), "a"), s, 0, 2, nil), join(t, dial(t, srv.ClientURL(), "b"), s, 1, 2, nil)}
	ps[0].e.Observe = func(_ clock.Time, w uint64) {
		if w != 100 && w != 200 {
			return
		}
		srv.Shutdown()
		srv.WaitForShutdown()
		var err error
		if srv, err = StartServer(ServerOptions{Port: n}); err != nil {
			t.Error(err)
		}
	}
	defer func() { srv.Shutdown() }()
	g, st := finish(t, ps)
	if g != want {
		t.Errorf("digest %v, oracle %v", g, want)
	}
	if st[0].Naks+st[1].Naks == 0 {
		t.Errorf("no batch was asked for again, the restarts missed the run: %+v", st)
	}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkWindows: nearly empty windows through one server.
func BenchmarkWindows(b *testing.B) {
	srv, err := StartServer(ServerOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer srv.Shutdown()
	for _, procs := range []int{2, 4, 6, 12, -4, -6, -12} {
		viaHub := procs < 0
		procs = max(procs, -procs)
		b.Run(fmt.Sprint("procs=", procs, ",hub=", viaHub), func(b *testing.B) {
			s := testSpec(14)
			s.Burst = 150
			for i := 0; b.Loop(); i++ {
				var ps []*proc
				for k := range procs {
					ps = append(ps, join(b, dial(b, srv.ClientURL(), "x"), s, k, procs, func(c *Config) { c.Run, c.Hub = fmt.Sprintf("b%d%v%d", procs, viaHub, i), viaHub }))
				}
				t0, cpu := time.Now(), cpuTime()
				_, st := finish(b, ps)
				b.ReportMetric(float64(st[0].Windows)/time.Since(t0).Seconds(), "windows/s")
				// Of all processes and the server: what a loaded machine cannot hide.
				b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/float64(st[0].Windows), "cpu-µs/window")
			}
		})
	}
}
