package topology

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Referenced files become part of the tree before anything is resolved: the
// resolved text then stands by itself, and every process of a cluster reads
// the same.

func (r *resolver) inline() {
	lines := r.root.get("workload")
	if lines == nil {
		return
	}
	for i, n := range lines.items {
		if n.kind != nMap {
			continue
		}
		field := "workload." + clip(n.str("name"))
		if f := n.get("file"); f != nil && f.kind == nScalar {
			if rows := r.csvRows(f, field+".file"); rows != nil {
				c := &node{kind: nMap, file: n.file, line: n.line, col: n.col, keys: slices.Clone(n.keys)}
				c.del("file")
				c.set("rows", rows)
				lines.items[i] = c
			}
			continue
		}
		if f := n.get("cdf"); f != nil && f.kind == nScalar {
			if pts := r.cdfPoints(f, field+".cdf"); pts != nil {
				c := &node{kind: nMap, file: n.file, line: n.line, col: n.col, keys: slices.Clone(n.keys)}
				c.set("cdf", pts)
				lines.items[i] = c
			}
		}
	}
}

func (r *resolver) open(f *node, field string) []byte {
	if r.read == nil {
		r.fail(f, field, f.text, "other files cannot be read here; give the content inline (rows: or a cdf list)", "")
		return nil
	}
	text, err := r.read(f.file, f.text)
	if err != nil {
		r.fail(f, field, f.text, "cannot be read: "+err.Error(), "")
		return nil
	}
	if len(text) > maxFileBytes {
		r.fail(f, field, f.text, fmt.Sprintf("has %d bytes; the limit is %d", len(text), maxFileBytes), "")
		return nil
	}
	return text
}

// csvRows reads a flow list; the header names the columns.
func (r *resolver) csvRows(f *node, field string) *node {
	text := r.open(f, field)
	if text == nil {
		return nil
	}
	cr := csv.NewReader(bytes.NewReader(text))
	cr.FieldsPerRecord, cr.Comment, cr.TrimLeadingSpace = -1, '#', true
	out := &node{kind: nSeq, file: f.text, line: 1, col: 1}
	for {
		rec, err := cr.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			line := 1
			var pe *csv.ParseError
			if errors.As(err, &pe) {
				line = pe.Line
			}
			r.fail(&node{file: f.text, line: line, col: 1}, field, "", "not valid CSV: "+err.Error(), "")
			return nil
		}
		row := &node{kind: nSeq, file: f.text}
		for i, v := range rec {
			line, col := cr.FieldPos(i)
			row.line, row.col = line, 1
			row.items = append(row.items, &node{kind: nScalar, file: f.text, line: line, col: col, text: strings.TrimSpace(v)})
		}
		out.items = append(out.items, row)
	}
	if !r.csvHeader(out, field) {
		return nil
	}
	return out
}

func (r *resolver) csvHeader(rows *node, field string) bool {
	if len(rows.items) == 0 {
		r.fail(rows, field, "", "is empty; the first line must be name,from,to,verb,size,start", "")
		return false
	}
	ok := true
	have := map[string]bool{}
	for _, h := range rows.items[0].items {
		if !slices.Contains(rowColumns, h.text) {
			r.fail(h, field, quoteEmpty(h.text), "unknown column; known: "+strings.Join(rowColumns, ", "), nearest(h.text, rowColumns))
			ok = false
		}
		have[h.text] = true
	}
	for _, need := range []string{"name", "from", "to", "size"} {
		if !have[need] {
			r.fail(rows.items[0], field, "", "the header lacks the column "+need, "")
			ok = false
		}
	}
	return ok
}

// cdfPoints reads lines "bytes cumulative%".
func (r *resolver) cdfPoints(f *node, field string) *node {
	text := r.open(f, field)
	if text == nil {
		return nil
	}
	out := &node{kind: nSeq, file: f.text, line: 1, col: 1}
	for i, l := range strings.Split(string(text), "\n") {
		l, _, _ = strings.Cut(l, "#")
		parts := strings.Fields(l)
		if len(parts) == 0 {
			continue
		}
		if len(parts) != 2 {
			r.fail(&node{file: f.text, line: i + 1, col: 1}, field, strings.TrimSpace(l), `must be "bytes cumulative%"`, "")
			return nil
		}
		pair := &node{kind: nSeq, file: f.text, line: i + 1, col: 1}
		for _, p := range parts {
			pair.items = append(pair.items, &node{kind: nScalar, file: f.text, line: i + 1, col: 1 + strings.Index(l, p), text: strings.TrimSuffix(p, "%")})
		}
		out.items = append(out.items, pair)
	}
	return out
}
