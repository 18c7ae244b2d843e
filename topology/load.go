package topology

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rocemu/rocemu/clock"
)

// LoadOptions says which files make a fabric.
type LoadOptions struct {
	Files []string // later ones overlay earlier ones key by key
	Sets  []string // PATH=VALUE, laid on last
	Seed  *uint64  // overrides the file's seed
}

// Source is the text of one fabric file.
type Source struct {
	Name string
	Text []byte
}

// Load reads and resolves fabric files. Its error is [Errors] when the files
// could be read: every mistake at once, nothing is half resolved.
func Load(opts LoadOptions) (*Plan, []Warning, error) {
	if len(opts.Files) == 0 {
		return nil, nil, fmt.Errorf("no fabric file given")
	}
	var srcs []Source
	for _, name := range opts.Files {
		text, err := readFabric(name)
		if err != nil {
			return nil, nil, err
		}
		srcs = append(srcs, Source{name, text})
	}
	return Resolve(srcs, opts.Sets, opts.Seed, readBeside)
}

// readFabric reads a fabric file that is there and not too large.
func readFabric(name string) ([]byte, error) {
	st, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such fabric file; `emuctl init FILE` writes one to start from", name)
	case err != nil:
		return nil, err
	case st.IsDir():
		return nil, fmt.Errorf("%s: is a directory, not a fabric file; that of a run has fabric.resolved.yaml in it", name)
	case st.Size() > maxFileBytes:
		return nil, fmt.Errorf("%s: has %d bytes; the limit is %d", name, st.Size(), maxFileBytes)
	}
	return os.ReadFile(name)
}

// readBeside reads a file named in a fabric file, relative to it.
func readBeside(from, name string) ([]byte, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(from), name)
	}
	return os.ReadFile(name)
}

// ParseBytes resolves one text that names no other files; sets are as in
// [LoadOptions].
func ParseBytes(name string, text []byte, sets ...string) (*Plan, []Warning, error) {
	return Resolve([]Source{{name, text}}, sets, nil, nil)
}

// LoadBytes is [ParseBytes] for a process of a cluster: the text is what
// [Plan.Resolved] printed elsewhere, and the plan is the same.
func LoadBytes(name string, text []byte) (*Plan, []Warning, error) {
	return Resolve([]Source{{name, text}}, nil, nil, nil)
}

// Resolve makes a plan of fabric texts. It is a pure function of its arguments
// and of what read returns; read may be nil.
func Resolve(srcs []Source, sets []string, seed *uint64, read ReadFile) (*Plan, []Warning, error) {
	r := &resolver{read: read, plan: &Plan{}}
	r.root = &node{kind: nMap, file: "fabric", line: 1, col: 1}
	fatal := false
	for i, s := range srcs {
		tree, errs := parseTree(s.Name, s.Text)
		fatal = fatal || len(errs) > 0
		r.errs = append(r.errs, errs...)
		r.check(tree, fileSpec(), "")
		if i == 0 {
			r.root = tree
			continue
		}
		r.root = overlay(r.root, tree)
	}
	for i, s := range sets {
		root, errs := applySet(r.root, s, i+1)
		r.root = root
		r.errs = append(r.errs, errs...)
	}
	if len(sets) > 0 {
		r.check(r.root, fileSpec(), "")
	}
	if seed != nil {
		r.root = overlayReplace(r.root, &node{kind: nMap, keys: []entry{{"seed", 1, 1, &node{kind: nScalar, file: "--seed", line: 1, col: 1, text: fmt.Sprint(*seed)}}}})
	}
	if fatal {
		return nil, nil, r.errs.sorted()
	}
	r.resolve()
	if len(r.errs) > 0 {
		return nil, r.warns, r.errs.sorted()
	}
	return r.plan, r.warns, nil
}

// resolve runs the stages; each needs the one before it to have succeeded.
func (r *resolver) resolve() {
	p := r.plan
	p.root = r.root
	p.Name, p.Seed = r.root.str("name"), 1
	if r.root.has("seed") {
		p.Seed = uint64(r.root.num("seed"))
	}
	r.runSection()
	r.inline()
	r.sonicLayers()
	if r.shapeUnknown() || !r.buildTopology() {
		return
	}
	p.byName = r.dev
	r.hintDevices()
	settingsBad := len(r.errs)
	r.switches()
	r.rnics()
	if len(r.errs) == settingsBad {
		r.couple()
		r.buildRoutes()
	}
	r.workload()
	r.faults()
	r.rest()
	r.finishRun()
	if len(r.errs) == 0 {
		text, acts := r.render()
		p.resolved, p.Hash, p.Model = text, sha256.Sum256(text), sha256.Sum256(text[:acts])
	}
}

// shapeUnknown reports mistakes that leave open which devices there are: what
// refers to a device would be told wrongly. A bad link leaves them as they are.
func (r *resolver) shapeUnknown() bool {
	return slices.ContainsFunc(r.errs, func(e *Error) bool {
		return strings.HasPrefix(e.Field, "topology") && !strings.HasPrefix(e.Field, "topology.links.")
	})
}

// runSection reads what does not depend on the fabric.
func (r *resolver) runSection() {
	n := overlay(defaults().get("run"), r.root.get("run"))
	run := &r.plan.Run
	switch u := n.str("until"); u {
	case "idle":
		run.Until = UntilIdle
	case "stopped":
		run.Until = UntilStopped
	default:
		run.Until, run.At = UntilTime, clock.Time(n.dur("until"))
		if run.At == 0 {
			r.fail(orNode(n.get("until"), n), "run.until", u, "must be above 0", "")
		}
	}
	run.Limit, run.Warmup, run.Workers = n.dur("limit"), n.dur("warmup"), int(n.num("workers"))
	run.Memory = n.size("memory")
	if run.Limit == 0 {
		r.fail(orNode(n.get("limit"), n), "run.limit", n.str("limit"), "must be above 0", "60s")
	}
	if run.Until == UntilTime && r.root.path("run", "limit") == nil {
		run.Limit = max(run.Limit, clock.Duration(run.At))
	}
}

// finishRun fills the stall time and checks the window.
func (r *resolver) finishRun() {
	n, run, p := r.root.get("run"), &r.plan.Run, r.plan
	run.Stall = max(clock.Second, 2*p.longestTimer())
	if n.has("stall") {
		run.Stall = n.dur("stall")
		if run.Stall == 0 {
			r.fail(n.get("stall"), "run.stall", n.str("stall"), "must be above 0", "1s")
		}
	}
	if n.has("window") && n.str("window") != "auto" {
		w := n.dur("window")
		if w <= 0 || w > p.Window {
			r.fail(n.get("window"), "run.window", n.str("window"), fmt.Sprintf("must be above 0 and at most the automatic window, %v", p.Window), "auto")
		}
		p.Window = w
	}
}

// longestTimer is the longest timer that the plan can arm.
func (p *Plan) longestTimer() clock.Duration {
	var t clock.Duration
	seen := map[*NIC]bool{}
	for _, id := range p.RNICs {
		nic := p.Devices[id].NIC
		if nic == nil || seen[nic] {
			continue
		}
		seen[nic] = true
		t = max(t, nic.QP.longestTimer(), nic.Pers.ReadNakLatency, nic.Pers.ReactLatency)
	}
	for i := range p.Devices {
		for j := range p.Devices[i].Ports {
			if w := p.Devices[i].Ports[j].PFC; w != nil && w.Watchdog != nil {
				t = max(t, w.Watchdog.Detect, w.Watchdog.Restore)
			}
		}
	}
	for i := range p.Flows {
		t = max(t, p.Flows[i].Interval)
		if p.Flows[i].Transport == TCP {
			t = max(t, p.RNIC(p.Flows[i].From).NIC.TCP.RTOMax)
		}
	}
	for i := range p.Faults {
		t = max(t, p.Faults[i].longestWait())
	}
	return min(t, 1<<60)
}

// longestTimer is the longest of the ACK timeout, the RNR wait and the time to
// repost a receive.
func (q *QPParams) longestTimer() clock.Duration {
	const unit = 4096 * clock.Nanosecond
	t := q.TimeoutFloor
	if n := max(q.Timeout, q.AltTimeout); n > 0 {
		t = max(t, unit<<n)
	}
	if q.ConnectCM || q.TimeoutMode == TimeoutLinux || q.TimeoutMode == TimeoutExact {
		t = max(t, 2*(2*unit<<q.PacketLife+unit<<q.AckDelay)) // rounded up to a power of two
	}
	if q.WindowT4 {
		t *= 4
	}
	rnr := 491520 * clock.Microsecond
	if q.MinRNRTimer == 0 {
		rnr = 655360 * clock.Microsecond
	} else if q.MinRNRTimer < 28 {
		rnr = 122880 * clock.Microsecond
	}
	t = max(t, rnr)
	if q.RecvRepost != clock.Duration(clock.Never) {
		t = max(t, q.RecvRepost)
	}
	return t
}

// rest reads captures, telemetry and expectations.
func (r *resolver) rest() {
	if cs := r.root.get("capture"); cs != nil {
		for i, n := range cs.items {
			field := fmt.Sprintf("capture[%d]", i)
			if n.kind != nMap {
				continue
			}
			if n.str("port") == "" || n.str("file") == "" {
				r.fail(n, field, "", "needs port and file", "")
				continue
			}
			if dev, port, ok := r.parsePort(n.get("port"), field+".port"); ok {
				r.plan.Capture = append(r.plan.Capture, Capture{dev, port, n.str("file")})
			}
		}
	}
	if t := r.root.get("telemetry"); t != nil && t.kind == nMap {
		r.plan.Telem = Telemetry{OTLP: t.str("otlp"), Interval: 100 * clock.Microsecond, Scale: 1000}
		if t.has("interval") {
			if r.plan.Telem.Interval = t.dur("interval"); r.plan.Telem.Interval <= 0 {
				r.fail(t.get("interval"), "telemetry.interval", t.str("interval"), "must be above 0", "100us")
			}
		}
		if t.has("scale") {
			r.plan.Telem.Scale = t.num("scale")
		}
	}
	if es := r.root.get("expect"); es != nil {
		for i, n := range es.items {
			if n.kind != nScalar || n.text == "" {
				r.fail(n, fmt.Sprintf("expect[%d]", i), "", "must be a CEL expression as text", "")
				continue
			}
			r.plan.Expect = append(r.plan.Expect, Expect{n.text, n.pos()})
		}
	}
}
