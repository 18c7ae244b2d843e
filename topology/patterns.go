package topology

import (
	"fmt"
	"sort"

	"github.com/rocemu/rocemu/clock"
)

// members are the RNICs a pattern runs over: from, or all; nil when they are
// fewer than two.
func (w *work) members(l *line) []uint32 {
	m := l.from
	if len(m) == 0 && !l.n.has("from") {
		m = w.all()
	}
	if len(m) < 2 {
		if len(w.r.errs) == 0 { // else a name may be missing that was told already
			w.r.fail(l.n, l.field, "", "a pattern needs at least two RNICs", "")
		}
		return nil
	}
	seen := make(map[uint32]bool, len(m))
	for _, k := range m {
		if seen[k] {
			w.r.fail(orNode(l.n.get("from"), l.n), l.field+".from", w.r.plan.RNIC(k).Name, "is in the list twice", "")
			return nil
		}
		seen[k] = true
	}
	return m
}

// incast: everyone in from sends to every RNIC in to.
func (w *work) incast(l *line) {
	for _, to := range l.to {
		for _, from := range l.from {
			if from == to && text(l.n.get("from")) == "all" {
				continue
			}
			w.pair(l, from, to)
		}
	}
}

// permutation: member i sends to member i+shift, modulo.
func (w *work) permutation(l *line) {
	m := w.members(l)
	if m == nil {
		return
	}
	shift := 1
	if l.n.has("shift") {
		shift = int(l.n.num("shift"))
	}
	if shift%len(m) == 0 {
		w.r.fail(orNode(l.n.get("shift"), l.n), l.field+".shift", fmt.Sprint(shift), fmt.Sprintf("must not be a multiple of %d, the number of RNICs: each would send to itself", len(m)), "1")
		return
	}
	for i := range m {
		w.pair(l, m[i], m[(i+shift)%len(m)])
	}
}

// allToAll: every ordered pair, each sender beginning with its successor.
func (w *work) allToAll(l *line) {
	m := w.members(l)
	for i := range m {
		for d := 1; d < len(m) && !w.full; d++ {
			w.pair(l, m[i], m[(i+d)%len(m)])
		}
	}
}

// pingmesh: every ordered pair probes with small messages, spread over the
// interval so that probes of one RNIC do not leave together.
func (w *work) pingmesh(l *line) {
	m := w.members(l)
	if !l.n.has("size") {
		l.size = 64
	}
	if !l.n.has("interval") {
		l.interval = clock.Millisecond
	}
	start := l.start
	for i := range m {
		for d := 1; d < len(m) && !w.full; d++ {
			l.start = start.Add(l.interval / clock.Duration(len(m)-1) * clock.Duration(d-1))
			w.pair(l, m[i], m[(i+d)%len(m)])
		}
	}
	l.start = start
}

// ring: the ring all-reduce of a vector of size bytes over n members: 2(n-1)
// steps of one chunk of ceil(size/n) bytes to the successor; a step is posted
// when the predecessor's chunk of the step before has arrived.
func (w *work) ring(l *line) {
	m := w.members(l)
	if m == nil {
		return
	}
	if l.transport != RC {
		w.contradict(l, "ring-allreduce needs transport rdma", "rdma", "transport", "pattern")
		return
	}
	n := int64(len(m))
	chunk := max(ceilDiv(l.size, n), 1)
	steps := 2 * (n - 1)
	if l.count > 0 {
		steps *= l.count
	} else {
		steps = -1
	}
	if !l.n.has("window") {
		l.window = 2
	}
	for q := 1; q <= l.qps && !w.full; q++ {
		first := int32(len(w.r.plan.Flows))
		for i := range m {
			w.add(l, m[i], m[(i+1)%len(m)], int32(q), chunk, steps, l.start)
		}
		if w.full {
			return
		}
		for i := range m {
			before := (i + len(m) - 1) % len(m)
			w.r.plan.Flows[first+int32(i)].Gate = first + int32(before)
		}
	}
}

// rows expands a CSV trace: rows are flows by (start, row).
func (w *work) rows(l *line) {
	rows := l.n.get("rows")
	if rows.kind != nSeq || len(rows.items) == 0 {
		return
	}
	head := rows.items[0]
	var ls []*line
	for _, row := range rows.items[1:] {
		m := w.rowNode(head, row, l)
		if m == nil {
			continue
		}
		name := m.str("name")
		field := l.field + "." + clip(name)
		c := &checker{}
		c.check(m, workSpec(), field)
		w.r.errs = append(w.r.errs, c.errs...)
		rl := w.decode(m, field, l.name)
		if len(c.errs) > 0 || !w.sane(rl) {
			continue
		}
		rl.id, rl.name = l.id, l.name
		if len(rl.from) != 1 || len(rl.to) != 1 {
			continue
		}
		ls = append(ls, rl)
	}
	sort.SliceStable(ls, func(i, j int) bool { return ls[i].start < ls[j].start })
	ord := map[uint64]int32{}
	for _, rl := range ls {
		for range rl.qps {
			k := uint64(rl.from[0])<<32 | uint64(rl.to[0])
			ord[k]++
			if f := w.add(rl, rl.from[0], rl.to[0], ord[k], rl.size, rl.count, rl.start); f != nil {
				p := &w.r.plan.Lines[l.id]
				p.Labels = append(p.Labels, rl.n.str("name"))
			}
		}
	}
	w.r.plan.Lines[l.id].Pattern = "trace"
}

var rowColumns = []string{"name", "from", "to", "verb", "size", "start", "count", "qps", "window", "interval", "rate", "dscp", "transport", "packet"}

// rowNode makes a workload mapping of a CSV row.
func (w *work) rowNode(head, row *node, l *line) *node {
	if len(row.items) != len(head.items) {
		w.r.fail(row, l.field, "", fmt.Sprintf("row has %d fields, the header %d", len(row.items), len(head.items)), "")
		return nil
	}
	m := &node{kind: nMap, file: row.file, line: row.line, col: row.col}
	for i, h := range head.items {
		if v := row.items[i]; v.kind == nScalar && v.text != "" {
			m.keys = append(m.keys, entry{h.text, v.line, v.col, v})
		}
	}
	return m
}
