package htsim

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/rocemu/rocemu/clock"
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
		im.fail(name, 1, 1, "unit", im.opt.Unit, "must be us or ps", "us")
	}
	found := 0
	for _, r := range split(im.opt.Matrix.Text) {
		switch key := r.f[0]; {
		case strings.Contains(key, "->"):
			found++
			im.connection(name, r, unit)
		case len(r.f) != 2 && key != "trigger" && key != "failure":
			im.fail(name, r.line, 1, key, strings.Join(r.f[1:], " "), "must be Nodes N, Connections N, or SRC->DST with id, start, size", "")
		case key == "Nodes":
			nodes = im.header(name, r, maxNodes)
			if nodes > im.nodes && im.nodes > 0 {
				im.fail(name, r.line, 1, key, r.f[1], fmt.Sprintf("the topology has %d", im.nodes), "")
			}
		case key == "Connections":
			conns = im.header(name, r, maxConns)
		case key == "Triggers", key == "trigger", key == "Failures", key == "failure":
			if len(r.f) == 2 && r.f[1] == "0" {
				continue
			}
			im.contradict(name, r.line, key, strings.Join(r.f[1:], " "), "has no meaning here", "ignored")
		default:
			im.fail(name, r.line, 1, key, r.f[1], "is not known; known are Nodes, Connections and SRC->DST", "")
		}
	}
	switch {
	case nodes == 0:
		im.fail(name, 1, 1, "Nodes", "", "missing", "")
	case conns < 0:
		im.fail(name, 1, 1, "Connections", "", "missing", "")
	case conns != found:
		im.contradict(name, 1, "Connections", strconv.Itoa(conns), fmt.Sprintf("the header says %d connections, the file has %d", conns, found), fmt.Sprintf("%d run", found))
	}
	sort.SliceStable(im.conns, func(i, j int) bool { return im.conns[i].start < im.conns[j].start })
}

func (im *importer) header(name string, r row, hi int) int {
	n, ok := count(r.f[1], 1, hi)
	if !ok {
		im.fail(name, r.line, 1, r.f[0], r.f[1], fmt.Sprintf("must be a whole number 1..%d", hi), "")
	}
	return n
}

// connection reads one line of the matrix.
func (im *importer) connection(name string, r row, unit clock.Duration) {
	c := conn{line: r.line, size: -1}
	a, b, _ := strings.Cut(r.f[0], "->")
	for _, x := range []struct {
		text string
		to   *int
	}{{a, &c.src}, {b, &c.dst}} {
		v, ok := count(x.text, 0, maxNodes)
		if !ok || im.nodes > 0 && v >= im.nodes {
			im.fail(name, r.line, 1, "connection", r.f[0], fmt.Sprintf("hosts are 0..%d", im.nodes-1), "")
			return
		}
		*x.to = v
	}
	if c.src == c.dst {
		im.fail(name, r.line, 1, "connection", r.f[0], "a host does not send to itself", "")
		return
	}
	triggered := false
	for i := 1; i < len(r.f); i += 2 {
		if i+1 == len(r.f) {
			im.fail(name, r.line, 1, r.f[i], "", "needs a value", "")
			return
		}
		triggered = im.option(name, r, r.f[i], r.f[i+1], &c, unit) || triggered
	}
	switch {
	case triggered:
	case c.size < 0:
		im.fail(name, r.line, 1, "size", "", "missing: bytes of the connection", "")
	case len(im.conns) < maxConns:
		im.conns = append(im.conns, c)
	}
}

// option takes one key of a connection; it reports a start by trigger, which
// leaves the connection out.
func (im *importer) option(name string, r row, key, v string, c *conn, unit clock.Duration) bool {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		im.fail(name, r.line, 1, key, v, "must be a whole number", "")
		return false
	}
	switch key {
	case "id", "prio":
	case "size":
		if c.size = n; n < 1 || n > math.MaxUint32 {
			im.fail(name, r.line, 1, key, v, "must be 1..4294967295", "")
		}
	case "start":
		switch {
		case n == 0:
		case unit == 0:
			im.fail(name, r.line, 1, "start", v, "readers of this format disagree on the unit of start: say --unit us or --unit ps", "")
		case n > int64(clock.Duration(clock.Never)/unit)/2:
			im.fail(name, r.line, 1, "start", v, "lies beyond what virtual time holds", "")
		default:
			c.start = clock.Duration(n) * unit
		}
	case "trigger", "send_done_trigger", "recv_done_trigger":
		im.contradict(name, r.line, key, v, "triggers have no meaning here", map[bool]string{true: "the connection is left out", false: "ignored"}[key == "trigger"])
		return key == "trigger"
	default:
		im.fail(name, r.line, 1, key, v, "is not known; known are id, start, size, prio, trigger", "")
	}
	return false
}
