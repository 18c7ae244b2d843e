package natsbus

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/rocemu/rocemu/actors/actortest"
	"github.com/rocemu/rocemu/clock"
)

// threeServers starts a cluster of NATS servers and waits until all are joined.
func threeServers(t *testing.T) (srv []*server.Server, urls string) {
	t.Helper()
	var routes []*url.URL
	var all []string
	for i := range 3 {
		o := ServerOptions{Name: fmt.Sprint("s", i+1), Cluster: "test", ClusterPort: server.RANDOM_PORT, Routes: routes}
		s, err := StartServer(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Shutdown)
		u, _ := url.Parse("nats://" + s.ClusterAddr().String())
		srv, routes, all = append(srv, s), append(routes, u), append(all, s.ClientURL())
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		joined := 0
		for _, s := range srv {
			if s.NumRoutes() >= 2 {
				joined++
			}
		}
		if joined == 3 {
			return srv, strings.Join(all, ",")
		}
		if time.Now().After(end) {
			t.Fatal("the servers never joined")
		}
	}
}

// Three processes on one server each of three; one server goes in the middle of
// the run and its process finds another.
func TestOneOfThreeServers(t *testing.T) {
	srv, urls := threeServers(t)
	s := testSpec(15)
	s.Burst = 100
	want, _ := actortest.New(s).Oracle()
	var ps []*proc
	for i := range 3 {
		first := srv[i].ClientURL()
		ps = append(ps, join(t, dial(t, first+","+urls, fmt.Sprint("p", i)), s, i, 3, nil))
	}
	ps[0].e.Observe = func(_ clock.Time, w uint64) {
		if w == 100 {
			srv[1].Shutdown()
			srv[1].WaitForShutdown()
		}
	}
	g, st := finish(t, ps)
	if g != want {
		t.Errorf("digest %v, oracle %v", g, want)
	}
	if st[0].Windows < 150 {
		t.Errorf("the run ended after %d windows, before the loss mattered", st[0].Windows)
	}
}
