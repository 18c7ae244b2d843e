//go:build compose

package compose

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	millisecond = int64(1e9) // virtual, in picoseconds
	file        = root + "/deploy/compose/compose.yaml"
	fabric      = root + "/deploy/compose/fabric.yaml"
)

// fault is one that a cluster took.
type fault struct {
	Name string `json:"name"`
	Text string `json:"text"`
	At   int64  `json:"at_ps"`
}

// inject breaks something now and returns the fault as a file would plan it.
func (p *project) inject(text, span string) (fault, string) {
	p.t.Helper()
	var fs []fault
	if err := json.Unmarshal([]byte(p.emuctl("fault", "inject", text, "--for", span, "--json")), &fs); err != nil || len(fs) != 1 {
		p.t.Fatalf("inject: %v %+v", err, fs)
	}
	return fs[0], fmt.Sprintf("%s name=%s at=%dps for=%s", fs[0].Text, fs[0].Name, fs[0].At, span)
}

// finish stops the run, and compares it with one process's run of the same
// file and faults.
func (p *project) finish(faults ...string) result {
	p.t.Helper()
	var at struct {
		At int64 `json:"at_ps"`
	}
	want := p.virtual() + 3*millisecond
	if err := json.Unmarshal([]byte(p.emuctl("stop", "--at", fmt.Sprintf("%dps", want), "--json")), &at); err != nil || at.At == 0 {
		p.t.Fatalf("stop: %v", err)
	}
	r := parseResult(p.t, p.emuctl("result", "--json"))
	over := fmt.Sprintf("run: {until: %dps}\n", at.At)
	for i, f := range faults {
		if i == 0 {
			over += "faults:\n"
		}
		over += fmt.Sprintf("  - %q\n", f)
	}
	want1 := alone(p.t, fabric, over)
	if r.Verdict != "complete" || r.Digest != want1.Digest || r.Virtual != want1.Virtual {
		p.t.Errorf("containers: %s, digest %s at %v ns; one process: %s, digest %s at %v ns", r.Verdict, r.Digest, r.Virtual, want1.Verdict, want1.Digest, want1.Virtual)
	}
	if n := want1.Engine.Processes; r.Engine.Processes <= n {
		p.t.Errorf("%d processes", r.Engine.Processes)
	}
	p.t.Logf("stopped at %v ns, digest %s in %d containers and in one process; %.2f CPU s a virtual ms",
		r.Virtual, r.Digest, r.Engine.Processes, r.Engine.CPU/(r.Virtual/1e6))
	return r
}

// TestFabric: up, all healthy, traffic, a fault with its whole chain, stop,
// equal digest, down.
func TestFabric(t *testing.T) {
	p := up(t, "fabric", file, "")
	p.until(time.Minute, "all containers are healthy", func() bool {
		ids := strings.Fields(p.compose("ps", "-q"))
		for _, h := range strings.Fields(docker(t, append([]string{"inspect", "-f", `{{if eq .State.Status "running"}}{{.State.Health.Status}}{{else}}exit{{.State.ExitCode}}{{end}}`}, ids...)...)) {
			if h != "healthy" && h != "exit0" {
				return false
			}
		}
		return true
	})
	from, t0 := p.virtual(), time.Now()
	time.Sleep(15 * time.Second)
	span := float64(p.virtual()-from) / float64(millisecond)
	load, _ := os.ReadFile("/proc/loadavg")
	t.Logf("pace: 1 ms of virtual time in %.2f s, at load %.5s", time.Since(t0).Seconds()/span, load)
	f, text := p.inject("link-down rnic3:1", "20ms")
	t0 = time.Now()
	// timeout 8: retry exceeded 8 x 1.048576 ms after the last progress.
	p.until(2*time.Minute, "retries run out", func() bool { return p.virtual() > f.At+9*millisecond })
	t.Logf("retries ran out within %v of the fault", time.Since(t0).Round(100*time.Millisecond))
	if l := p.emuctl("fault", "list"); !strings.Contains(l, f.Name) {
		t.Errorf("fault list: %s", l)
	}
	if c := p.emuctl("trace", "write"); !strings.Contains(c, "retry_exc_err") || !strings.Contains(c, f.Name) {
		t.Errorf("the chain, live: %.600s", c)
	}
	r := p.finish(text)
	if r.Flows["write"].Status != "retry_exc_err" || r.Flows["read"].Status != "success" || r.Totals.Dropped == 0 {
		t.Errorf("the fault's chain: %+v", r)
	}
}

// TestHarm: containers die, stand still and lose their network; the result is
// the same.
func TestHarm(t *testing.T) {
	p := up(t, "harm", file, "")
	_, text := p.inject("loss leaf1:uplink1 probability=0.01", "30ms")
	p.goesOn("before", 3*millisecond)

	if pid, err := strconv.Atoi(docker(t, "inspect", "-f", "{{.State.Pid}}", p.id("leaf1"))); err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
		p.goesOn("leaf1 crashed, restarted by its policy", 5*millisecond)
		if n := docker(t, "inspect", "-f", "{{.RestartCount}}", p.id("leaf1")); n == "0" {
			t.Error("the restart policy did nothing")
		}
	} else {
		t.Logf("not killed by process id: %v", err)
	}
	// docker kill counts as a stop by hand: no policy starts it again.
	docker(t, "kill", p.id("leaf2"))
	p.goesOn("leaf2 killed, its devices elsewhere", 5*millisecond)
	docker(t, "start", p.id("leaf2"))
	for _, s := range []string{"nats", "coord1"} {
		docker(t, "kill", p.id(s))
		time.Sleep(2 * time.Second)
		docker(t, "start", p.id(s))
		p.goesOn(s+" killed and started", 5*millisecond)
	}
	net := p.name + "_default"
	docker(t, "network", "disconnect", net, p.id("spine1"))
	time.Sleep(10 * time.Second)
	docker(t, "network", "connect", net, p.id("spine1"))
	p.goesOn("spine1 without network for 10 s", 5*millisecond)
	s, err := p.status()
	if err != nil || s.Run.Moves == 0 {
		t.Errorf("nothing moved: %+v, %v", s.Run, err)
	}
	p.finish(text)
}

// TestHA: three NATS servers and coordinators; losing one of each stops
// nothing.
func TestHA(t *testing.T) {
	p := up(t, "ha", file, root+"/deploy/compose/ha.env")
	p.goesOn("before", 3*millisecond)
	s, err := p.status()
	if err != nil {
		t.Fatal(err)
	}
	p.ctl = "coord1"
	if s.Leader == p.ctl {
		p.ctl = "coord2"
	}
	docker(t, "kill", p.id(s.Leader))
	p.goesOn("leader "+s.Leader+" killed", 5*millisecond)
	docker(t, "kill", p.id("nats2"))
	p.goesOn("nats2 killed", 5*millisecond)
	docker(t, "start", p.id(s.Leader))
	docker(t, "start", p.id("nats2"))
	p.goesOn("both started", 5*millisecond)
	docker(t, "kill", p.id("nats"))
	p.goesOn("nats killed", 5*millisecond)
	docker(t, "start", p.id("nats"))
	_, text := p.inject("drop rnic1:1 dir=out kind=data count=3", "5ms")
	p.goesOn("a fault", 5*millisecond)
	p.finish(text)
}

// TestRacks: a POD of 64 servers, a container a rack, runs to its end.
func TestRacks(t *testing.T) {
	engine(t)
	dir := t.TempDir()
	f := filepath.Join(dir, "fabric.yaml")
	text := `schema: 1
name: pod64
topology: {pods: 1, spines: 4, leaves: 8, servers: 8, links: {server: {rate: 25Gbps, length: 100m}, uplink: {rate: 100Gbps, length: 300m}}}
workload:
  - {name: perm, pattern: permutation, shift: 8, verb: write, size: 250KB}
`
	if err := os.WriteFile(f, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := generate(f, dir); err != nil {
		t.Fatalf("emuctl compose: %v: %s", err, out)
	}
	p := up(t, "racks", filepath.Join(dir, "compose.yaml"), "")
	r := parseResult(t, p.emuctl("result", "--json"))
	want := alone(t, f, "")
	if r.Verdict != "complete" || r.Digest != want.Digest || r.Totals.Completed != 64 || r.Engine.Processes != 12 {
		t.Errorf("containers: %+v\none process: %+v", r, want)
	}
	t.Logf("64 flows in %.2f s wall in %d containers, digest %s", r.Engine.Wall, r.Engine.Processes, r.Digest)
}
