package htsim

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/topology/internal/intake"
)

// matrix reads Nodes, Connections and lines such as 3->7 id 1 start 0 size
// 2000000.
func (im *importer) matrix() {
	name := im.opt.Matrix.Name
	nodes, conns := 0, -1
	var unit clock.Duration
	switch im.opt.Unit {
	case "us":
		unit = clock.Microsecond
	case "ps":
		unit = clock.Picosecond
	case "":
	default:
		im.Fail(name, 1, 1, "unit", im.opt.Unit, "must be us or ps", "us")
	}
	found := 0
	for _, r := range intake.Split(im.opt.Matrix.Text, "#") {
		switch key := r.F[0]; {
		case strings.Contains(key, "->"):
			found++
			im.connection(name, r, unit)
		case len(r.F) != 2 && key != "trigger" && key != "failure":
			im.Fail(name, r.Line, 1, key, strings.Join(r.F[1:], " "), "must be Nodes N, Connections N, or SRC->DST with id, start, size", "")
		case key == "Nodes":
			nodes = im.header(name, r, maxNodes)
			if nodes > im.nodes && im.nodes > 0 {
				im.Fail(name, r.Line, 1, key, r.F[1], fmt.Sprintf("the topology has %d", im.nodes), "")
			}
		case key == "Connections":
			conns = im.header(name, r, maxConns)
		case key == "Triggers", key == "trigger", key == "Failures", key == "failure":
			if len(r.F) == 2 && r.F[1] == "0" {
				continue
			}
			im.Contradict(name, r.Line, key, strings.Join(r.F[1:], " "), "has no meaning here", "ignored")
		default:
			im.Fail(name, r.Line, 1, key, r.F[1], "is not known; known are Nodes, Connections and SRC->DST", "")
		}
	}
	switch {
	case nodes == 0:
		im.Fail(name, 1, 1, "Nodes", "", "missing", "")
	case conns < 0:
		im.Fail(name, 1, 1, "Connections", "", "missing", "")
	case conns != found:
		im.Contradict(name, 1, "Connections", strconv.Itoa(conns), fmt.Sprintf("the header says %d connections, the file has %d", conns, found), fmt.Sprintf("%d run", found))
	}
	sort.SliceStable(im.conns, func(i, j int) bool { return im.conns[i].start < im.conns[j].start })
}

func (im *importer) header(name string, r intake.Row, hi int) int {
	n, ok := intake.Count(r.F[1], 1, hi)
	if !ok {
		im.Fail(name, r.Line, 1, r.F[0], r.F[1], fmt.Sprintf("must be a whole number 1..%d", hi), "")
	}
	return n
}

// connection reads one line of the matrix.
func (im *importer) connection(name string, r intake.Row, unit clock.Duration) {
	c := conn{line: r.Line, size: -1}
	a, b, _ := strings.Cut(r.F[0], "->")
	for _, x := range []struct {
		text string
		to   *int
	}{{a, &c.src}, {b, &c.dst}} {
		v, ok := intake.Count(x.text, 0, maxNodes)
		if !ok || im.nodes > 0 && v >= im.nodes {
			im.Fail(name, r.Line, 1, "connection", r.F[0], fmt.Sprintf("hosts are 0..%d", im.nodes-1), "")
			return
		}
		*x.to = v
	}
	if c.src == c.dst {
		im.Fail(name, r.Line, 1, "connection", r.F[0], "a host does not send to itself", "")
		return
	}
	triggered := false
	for i := 1; i < len(r.F); i += 2 {
		if i+1 == len(r.F) {
			im.Fail(name, r.Line, 1, r.F[i], "", "needs a value", "")
			return
		}
		triggered = im.option(name, r, r.F[i], r.F[i+1], &c, unit) || triggered
	}
	switch {
	case triggered:
	case c.size < 0:
		im.Fail(name, r.Line, 1, "size", "", "missing: bytes of the connection", "")
	case len(im.conns) < maxConns:
		im.conns = append(im.conns, c)
	}
}

// option takes one key of a connection; it reports a start by trigger, which
// leaves the connection out.
func (im *importer) option(name string, r intake.Row, key, v string, c *conn, unit clock.Duration) bool {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		im.Fail(name, r.Line, 1, key, v, "must be a whole number", "")
		return false
	}
	switch key {
	case "id", "prio":
	case "size":
		if c.size = n; n < 1 || n > math.MaxUint32 {
			im.Fail(name, r.Line, 1, key, v, "must be 1..4294967295", "")
		}
	case "start":
		switch {
		case n == 0:
		case unit == 0:
			im.Fail(name, r.Line, 1, "start", v, "readers of this format disagree on the unit of start: say --unit us or --unit ps", "")
		case n > int64(clock.Duration(clock.Never)/unit)/2:
			im.Fail(name, r.Line, 1, "start", v, "lies beyond what virtual time holds", "")
		default:
			c.start = clock.Duration(n) * unit
		}
	case "trigger", "send_done_trigger", "recv_done_trigger":
		im.Contradict(name, r.Line, key, v, "triggers have no meaning here", map[bool]string{true: "the connection is left out", false: "ignored"}[key == "trigger"])
		return key == "trigger"
	default:
		im.Fail(name, r.Line, 1, key, v, "is not known; known are id, start, size, prio, trigger", "")
	}
	return false
}
