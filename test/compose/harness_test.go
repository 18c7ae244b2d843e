//go:build compose

// Package compose runs whole fabrics in containers and harms them: docker kill,
// restart, network disconnect. The measure is always the same: the digest must
// equal that of one process that was left alone. It needs a Docker engine, no
// registry, and minutes:
//
//	go test -tags compose -v ./test/compose
package compose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const root = "../.." // of the repository

var setup struct {
	once sync.Once
	cmd  []string // docker compose or docker-compose
	why  string   // to skip
	err  error
}

// engine finds Docker and Compose and builds the image; without an engine the
// test is skipped.
func engine(t *testing.T) {
	t.Helper()
	setup.once.Do(func() {
		if out, err := exec.Command("docker", "info").CombinedOutput(); err != nil {
			setup.why = fmt.Sprintf("no Docker engine: %v: %.200s", err, out)
			return
		}
		switch {
		case exec.Command("docker", "compose", "version").Run() == nil:
			setup.cmd = []string{"docker", "compose"}
		case exec.Command("docker-compose", "version").Run() == nil:
			setup.cmd = []string{"docker-compose"}
		default:
			setup.why = "no docker compose and no docker-compose"
			return
		}
		if os.Getenv("ROCEMU_IMAGE") != "" {
			return // an image that was made before, as was dist/bin
		}
		c := exec.Command("make", "images")
		c.Dir = root
		if out, err := c.CombinedOutput(); err != nil {
			setup.err = fmt.Errorf("make images: %w: %s", err, out)
		}
	})
	if setup.why != "" {
		t.Skip(setup.why)
	}
	if setup.err != nil {
		t.Fatal(setup.err)
	}
}

// project is one compose file, up.
type project struct {
	t    *testing.T
	name string
	args []string // of compose: files, environment
	ctl  string   // service in which emuctl runs
}

// up starts a compose file and waits for the run to begin; the end of the test
// takes it down and checks that nothing is left.
func up(t *testing.T, name, file, env string) *project {
	t.Helper()
	engine(t)
	p := &project{t: t, name: "rocemutest" + name, ctl: "coord1"}
	p.args = []string{"-p", p.name, "-f", file}
	if env != "" {
		p.args = append(p.args, "--env-file", env)
	}
	t.Cleanup(p.down)
	t0 := time.Now()
	p.compose("up", "-d")
	t.Logf("up returned after %v", time.Since(t0).Round(100*time.Millisecond))
	p.until(3*time.Minute, "the run begins", func() bool { s, err := p.status(); return err == nil && s.Run != nil && s.Run.Virtual > 0 })
	t.Logf("traffic flows after %v", time.Since(t0).Round(100*time.Millisecond))
	return p
}

// down removes everything and looks for what is left.
func (p *project) down() {
	if p.t.Failed() {
		out, _ := p.try("logs", "--tail", "40")
		p.t.Logf("%s", out)
	}
	t0 := time.Now()
	if out, err := p.try("down", "-v", "--timeout", "20"); err != nil {
		p.t.Errorf("down: %v: %s", err, out)
	}
	p.t.Logf("down after %v", time.Since(t0).Round(100*time.Millisecond))
	label := "label=com.docker.compose.project=" + p.name
	for _, what := range [][]string{{"ps", "-aq"}, {"volume", "ls", "-q"}, {"network", "ls", "-q"}} {
		if out := docker(p.t, append(what, "--filter", label)...); out != "" {
			p.t.Errorf("down left (docker %s): %s", what[0], out)
		}
	}
}

func (p *project) try(args ...string) (string, error) {
	all := append(append(append([]string{}, setup.cmd[1:]...), p.args...), args...)
	c := exec.Command(setup.cmd[0], all...)
	c.Env = append(os.Environ(), "ROCEMU_TARGET=prebuilt")
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return out.String(), fmt.Errorf("compose %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}

func (p *project) compose(args ...string) string {
	p.t.Helper()
	out, err := p.try(args...)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// emuctl runs a verb inside a coordinator's container.
func (p *project) emuctl(args ...string) string {
	p.t.Helper()
	return p.compose(append([]string{"exec", "-T", p.ctl, "emuctl"}, args...)...)
}

// id is the container of a service.
func (p *project) id(service string) string {
	p.t.Helper()
	return strings.TrimSpace(p.compose("ps", "-q", service))
}

func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// status is what the tests read of emuctl status --json.
type status struct {
	Leader string `json:"leader"`
	Run    *struct {
		State   string `json:"state"`
		Why     string `json:"why"`
		Virtual int64  `json:"virtual_ps"`
		Moves   int    `json:"moves"`
		Windows int64  `json:"windows"`
	} `json:"run"`
}

func (p *project) status() (s status, err error) {
	out, err := p.try("exec", "-T", p.ctl, "emuctl", "status", "--json")
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal([]byte(out), &s)
}

func (p *project) virtual() int64 {
	p.t.Helper()
	s, err := p.status()
	if err != nil || s.Run == nil {
		p.t.Fatalf("status: %+v, %v", s, err)
	}
	if s.Run.Why != "" {
		p.t.Fatalf("the run is %s: %s", s.Run.State, s.Run.Why)
	}
	return s.Run.Virtual
}

func (p *project) until(limit time.Duration, what string, ok func() bool) {
	p.t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(500 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// goesOn waits for a span of virtual time to pass.
func (p *project) goesOn(what string, span int64) {
	p.t.Helper()
	t0, from := time.Now(), int64(-1)
	p.until(2*time.Minute, "virtual time goes on: "+what, func() bool {
		s, err := p.status()
		if err != nil || s.Run == nil {
			return false
		}
		if from < 0 {
			from = s.Run.Virtual
		}
		return s.Run.Virtual >= from+span
	})
	p.t.Logf("%s: %v of virtual time passed within %v", what, time.Duration(span/1000), time.Since(t0).Round(100*time.Millisecond))
}

// result is what the tests read of a result.
type result struct {
	Verdict string  `json:"verdict"`
	Digest  string  `json:"digest"`
	Virtual float64 `json:"virtual_ns"`
	Totals  struct {
		Flows, Completed, Failed int
		Dropped                  int64 `json:"dropped_frames"`
	} `json:"totals"`
	Flows map[string]struct {
		Status    string `json:"status"`
		Completed int64  `json:"completed"`
	} `json:"flows"`
	Engine struct {
		CPU       float64 `json:"cpu_s"`
		Wall      float64 `json:"wall_s"`
		Processes int     `json:"processes"`
	} `json:"engine"`
}

func parseResult(t *testing.T, text string) (r result) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("result: %v: %.300s", err, text)
	}
	return r
}

// alone runs the same file in one process on this machine, with settings laid
// over it.
func alone(t *testing.T, file, over string) result {
	t.Helper()
	args := []string{"run", file, "--json"}
	if over != "" {
		f := filepath.Join(t.TempDir(), "over.yaml")
		if err := os.WriteFile(f, []byte(over), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-f", f)
	}
	var out, errs bytes.Buffer
	c := exec.Command(filepath.Join(root, "dist/bin/emuctl"), args...)
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		t.Fatalf("emuctl run: %v: %s", err, errs.String())
	}
	return parseResult(t, out.String())
}

// generate writes the compose file of a fabric.
func generate(file, dir string) (string, error) {
	out, err := exec.Command(filepath.Join(root, "dist/bin/emuctl"), "compose", file, "--out", dir).CombinedOutput()
	return string(out), err
}
