// Package hpcc turns the input pair of the public ns-3 HPCC simulator
// (topology, flows and, optionally, its config) into a fabric file. What the
// files contradict is refused with file and line; lenient mode runs what is
// consistent and lists what it left out. Start at [Import].
package hpcc

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/topology"
	"github.com/rocemu/rocemu/topology/internal/intake"
)

// File is one input text.
type File = intake.File

// Options are the inputs. Config may be empty; More are further flow files.
type Options struct {
	Topology, Flows, Config File
	More                    []File
	Tool                    Tool
	Lenient                 bool
}

// Tool is the simulator that the files are of.
type Tool uint8

// The simulators. ConWeave's flow rows have no port; its topologies are those
// of HPCC.
const (
	HPCC Tool = iota
	ConWeave
)

// String names the tool as its files do.
func (t Tool) String() string { return [...]string{"hpcc", "conweave"}[t] }

// Result is the fabric file and what a reader should know about it.
type Result = intake.Result

// Bounds on input that may be hostile.
const (
	maxNodes = 1 << 17
	maxLinks = 1 << 20
	maxFlows = 1 << 22
)

// Import converts. Its error is [topology.Errors].
func Import(o Options) (*Result, error) {
	im := &importer{opt: o, Log: intake.Log{Lenient: o.Lenient}}
	im.topology()
	for _, f := range append([]File{o.Flows}, o.More...) {
		im.flows(f)
	}
	im.config()
	if err := im.Err(); err != nil {
		return nil, err
	}
	im.roles()
	return &Result{YAML: im.render(), Notes: im.Notes}, nil
}

type importer struct {
	intake.Log
	opt   Options
	nodes int
	isSw  map[int]bool
	role  map[int]string // of switches
	links []link
	rows  []flow
	conf  config
}

type link struct {
	line, a, b int
	ap, bp     int // port numbers
	rate       clock.Rate
	delay      clock.Duration
	loss       string
}

type flow struct {
	line, src, dst, pg int
	size               int64
	start              clock.Duration
}

// topology reads the header (nodes, switches, links), the switch ids and the
// links.
func (im *importer) topology() {
	name := im.opt.Topology.Name
	rows := intake.Split(im.opt.Topology.Text, "")
	if len(rows) > 0 && len(rows[0].F) == 6 {
		rows[0].F = im.simAI(name, rows[0])
	}
	if len(rows) == 0 || len(rows[0].F) != 3 {
		im.Fail(name, 1, 1, "header", "", "the first line must be: nodes switches links, or SimAI's: nodes gpus_per_server nvswitches switches links gpu", "")
		return
	}
	var n [3]int
	for i, w := range []string{"nodes", "switches", "links"} {
		v, ok := intake.Count(rows[0].F[i], 0, []int{maxNodes, maxNodes, maxLinks}[i])
		if !ok {
			im.Fail(name, rows[0].Line, 1, w, rows[0].F[i], "must be a whole number", "")
			return
		}
		n[i] = v
	}
	im.nodes, im.isSw = n[0], map[int]bool{}
	rows = im.switchIDs(name, rows[1:], n[1])
	im.linkRows(name, rows, n[2])
}

// simAI turns SimAI's header, nodes gpus_per_server nvswitches switches links
// gpu, into the other one: NVSwitches are switches, and none of them is legal.
func (im *importer) simAI(name string, r intake.Row) []string {
	nv, ok1 := intake.Count(r.F[2], 0, maxNodes)
	sw, ok2 := intake.Count(r.F[3], 0, maxNodes)
	if !ok1 || !ok2 {
		im.Fail(name, r.Line, 1, "nvswitches", r.F[2], "NVSwitches and switches must be whole numbers", "")
		return nil
	}
	im.Note(name, r.Line, "%s GPUs a server of type %s, %d NVSwitches: every GPU is a host here", r.F[1], r.F[5], nv)
	return []string{r.F[0], strconv.Itoa(nv + sw), r.F[4]}
}

func (im *importer) switchIDs(name string, rows []intake.Row, want int) []intake.Row {
	if want == 0 {
		return rows
	}
	if len(rows) == 0 {
		im.Fail(name, 2, 1, "switches", "", "missing line of switch ids", "")
		return nil
	}
	for _, s := range rows[0].F {
		id, ok := intake.Count(s, 0, im.nodes-1)
		if !ok {
			im.Fail(name, rows[0].Line, 1, "switches", s, fmt.Sprintf("must be a node 0..%d", im.nodes-1), "")
			continue
		}
		if im.isSw[id] {
			im.Fail(name, rows[0].Line, 1, "switches", s, "is listed twice", "")
		}
		im.isSw[id] = true
	}
	if len(rows[0].F) != want {
		im.Fail(name, rows[0].Line, 1, "switches", strconv.Itoa(len(rows[0].F)), fmt.Sprintf("the header says %d switches", want), "")
	}
	return rows[1:]
}

func (im *importer) linkRows(name string, rows []intake.Row, want int) {
	data := 0
	for data < len(rows) && isNumber(rows[data].F[0]) {
		data++
	}
	if data < len(rows) {
		im.trailing(name, rows[data], "links")
	}
	switch {
	case data < want:
		im.Fail(name, 1, 1, "links", strconv.Itoa(want), fmt.Sprintf("the header says %d links, the file has %d", want, data), strconv.Itoa(data))
	case data > want:
		im.Contradict(name, rows[want].Line, "links", strconv.Itoa(data),
			fmt.Sprintf("the header says %d links, the file has %d; rows from line %d are beyond it", want, data, rows[want].Line),
			fmt.Sprintf("first %d used, %d skipped", want, data-want))
		if im.opt.Lenient {
			data = want
		}
	}
	var outside []int
	port := map[int]int{}
	for _, r := range rows[:data] {
		l, ok := im.link(name, r, &outside)
		if !ok {
			continue
		}
		port[l.a]++
		port[l.b]++
		l.ap, l.bp = port[l.a], port[l.b]
		im.links = append(im.links, l)
		for _, end := range []int{l.a, l.b} {
			if !im.isSw[end] && port[end] > 2 {
				im.Fail(name, r.Line, 1, "link", strconv.Itoa(end), "a host has at most two links", "")
			}
		}
	}
	if len(outside) > 0 {
		im.Fail(name, 1, 1, "nodes", strconv.Itoa(im.nodes), fmt.Sprintf("nodes %s are not in a %d-node topology (ids 0..%d)", span(outside), im.nodes, im.nodes-1), "")
	}
}

// trailing is text after the rows. ConWeave's published files end with a legend.
func (im *importer) trailing(name string, r intake.Row, what string) {
	msg := fmt.Sprintf("text after the %s, from line %d", what, r.Line)
	if im.opt.Tool == ConWeave {
		im.Note(name, r.Line, "%s is ignored", msg)
		return
	}
	im.Contradict(name, r.Line, "trailing text", strings.Join(r.F, " "), msg, "ignored")
}

func (im *importer) link(name string, r intake.Row, outside *[]int) (link, bool) {
	l := link{line: r.Line}
	if len(r.F) != 5 {
		im.Fail(name, r.Line, 1, "link", strings.Join(r.F, " "), "must be: src dst rate delay error_rate", "")
		return l, false
	}
	ok := true
	for i, to := range []*int{&l.a, &l.b} {
		v, valid := intake.Count(r.F[i], 0, maxNodes*4)
		if !valid {
			im.Fail(name, r.Line, 1, "link", r.F[i], "must be a node id", "")
			ok = false
		} else if v >= im.nodes {
			*outside = append(*outside, v)
			ok = false
		}
		*to = v
	}
	if ok && l.a == l.b {
		im.Fail(name, r.Line, 1, "link", r.F[1], "a link joins two nodes", "")
		ok = false
	}
	var err error
	if l.rate, err = topology.ParseRate(r.F[2]); err != nil {
		im.Fail(name, r.Line, 1, "rate", r.F[2], err.Error(), "")
		ok = false
	}
	if l.delay, err = topology.ParseDuration(r.F[3]); err != nil {
		im.Fail(name, r.Line, 1, "delay", r.F[3], err.Error(), "")
		ok = false
	}
	p, err := topology.ParseProb64(r.F[4])
	if err != nil {
		im.Fail(name, r.Line, 1, "error_rate", r.F[4], err.Error(), "")
		ok = false
	}
	if p > 0 {
		l.loss = r.F[4]
	}
	return l, ok
}

func isNumber(s string) bool { _, err := strconv.ParseFloat(s, 64); return err == nil }

// span renders ids as ranges: 66..257 or 3, 9.
func span(ids []int) string {
	sort.Ints(ids)
	var parts []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1]-ids[j] <= 1 {
			j++
		}
		if ids[i] == ids[j] {
			parts = append(parts, strconv.Itoa(ids[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d..%d", ids[i], ids[j]))
		}
		i = j + 1
		if len(parts) > 20 {
			parts = append(parts, "…")
			break
		}
	}
	return strings.Join(parts, ", ")
}

// flows reads the count and the rows: src dst priority port bytes start(s);
// ConWeave's have no port.
func (im *importer) flows(file File) {
	name := file.Name
	rows := intake.Split(file.Text, "")
	if len(rows) == 0 || len(rows[0].F) != 1 {
		im.Fail(name, 1, 1, "header", "", "the first line must be the number of flows", "")
		return
	}
	want, ok := intake.Count(rows[0].F[0], 0, maxFlows)
	if !ok {
		im.Fail(name, rows[0].Line, 1, "flows", rows[0].F[0], "must be a whole number", "")
		return
	}
	rows = rows[1:]
	data := 0
	for data < len(rows) && isNumber(rows[data].F[0]) {
		data++
	}
	if data < len(rows) {
		im.trailing(name, rows[data], "flows")
	}
	if data < want {
		im.Fail(name, 1, 1, "flows", strconv.Itoa(want), fmt.Sprintf("the header says %d flows, the file has %d rows", want, data), strconv.Itoa(data))
	}
	if data > want {
		im.Contradict(name, 1, "flows", strconv.Itoa(want), fmt.Sprintf("the header says %d flows, the file has %d rows", want, data),
			fmt.Sprintf("first %d run, %d skipped", want, data-want))
		if im.opt.Lenient {
			data = want
		}
	}
	im.flowRows(name, rows[:data])
}

func (im *importer) flowRows(name string, rows []intake.Row) {
	var outside []int
	at := 0
	tuple := map[[3]int]int{}
	for _, r := range rows {
		f, port, ok := im.flow(name, r)
		if !ok {
			continue
		}
		bad := false
		for _, id := range []int{f.src, f.dst} {
			if id >= im.nodes {
				outside = append(outside, id)
				bad = true
				if at == 0 {
					at = r.Line
				}
			} else if im.isSw[id] {
				im.Fail(name, r.Line, 1, "flow", strconv.Itoa(id), "is a switch; flows run between hosts", "")
				bad = true
			}
		}
		if f.src == f.dst && !bad {
			im.Fail(name, r.Line, 1, "flow", strconv.Itoa(f.src), "a host does not send to itself", "")
		}
		k := [3]int{f.src, f.dst, port}
		if old := tuple[k]; old > 0 {
			im.Note(name, r.Line, "same source, destination and port as line %d; it gets a queue pair and UDP source port of its own", old)
		} else {
			tuple[k] = r.Line
		}
		if !bad {
			im.rows = append(im.rows, f)
		}
	}
	if len(outside) > 0 {
		im.Fail(name, at, 1, "hosts", "", fmt.Sprintf("hosts %s are not in a %d-node topology (ids 0..%d)", span(outside), im.nodes, im.nodes-1), "")
	}
	if !sort.SliceIsSorted(im.rows, func(i, j int) bool { return im.rows[i].start < im.rows[j].start }) {
		im.Note(name, 1, "start times are not ascending; flows are sorted by (start, line)")
		sort.SliceStable(im.rows, func(i, j int) bool { return im.rows[i].start < im.rows[j].start })
	}
}

func (im *importer) flow(name string, r intake.Row) (f flow, port int, ok bool) {
	if im.opt.Tool == ConWeave {
		if len(r.F) != 5 {
			im.Fail(name, r.Line, 1, "flow", strings.Join(r.F, " "), "must be: src dst priority bytes start", "")
			return f, 0, false
		}
		r.F = []string{r.F[0], r.F[1], r.F[2], strconv.Itoa(len(im.rows) & 65535), r.F[3], r.F[4]}
	}
	if len(r.F) != 6 {
		im.Fail(name, r.Line, 1, "flow", strings.Join(r.F, " "), "must be: src dst priority port bytes start", "")
		return f, 0, false
	}
	ok = true
	for i, x := range []struct {
		to *int
		hi int
		w  string
	}{{&f.src, maxNodes * 4, "src"}, {&f.dst, maxNodes * 4, "dst"}, {&f.pg, 7, "priority"}, {&port, 65535, "port"}} {
		v, valid := intake.Count(r.F[i], 0, x.hi)
		if !valid {
			im.Fail(name, r.Line, 1, x.w, r.F[i], fmt.Sprintf("must be 0..%d", x.hi), "")
			ok = false
		}
		*x.to = v
	}
	size, err := strconv.ParseInt(r.F[4], 10, 64)
	if err != nil || size < 0 || size >= 1<<32 {
		im.Fail(name, r.Line, 1, "bytes", r.F[4], "must be 0..4294967295", "")
		ok = false
	}
	start, err := topology.ParseDuration(r.F[5] + "s")
	if err != nil {
		im.Fail(name, r.Line, 1, "start", r.F[5], "must be a time in seconds", "")
		ok = false
	}
	f.line, f.size, f.start = r.Line, size, start
	return f, port, ok
}
