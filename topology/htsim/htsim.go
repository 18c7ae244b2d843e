// Package htsim turns the inputs of the public htsim packet simulator, a
// fat-tree topology (.topo) and a connection matrix (.cm), into a fabric file.
// Its switches stay lossless (PFC on every port, cores too), as in its RoCE
// runs. What the files contradict is refused with file and line. Start at
// [Import].
package htsim

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/topology"
)

// File is one input text.
type File struct {
	Name string
	Text []byte
}

// Options are the inputs. Unit is what start values of the matrix count: us or
// ps. Public readers of the format disagree, so it must be given as soon as
// one of them is not 0.
type Options struct {
	Topology, Matrix File
	Unit             string
	Lenient          bool // leave out what has no meaning here, with a note
}

// Result is the fabric file and what a reader should know about it.
type Result struct {
	YAML  []byte
	Notes []string // file:line:column: what was changed, skipped or ignored
}

// Bounds on input that may be hostile.
const (
	maxNodes = 1 << 16
	maxRadix = 1 << 12
	maxConns = 1 << 22
	maxNotes = 500
)

// Import converts. Its error is [topology.Errors].
func Import(o Options) (*Result, error) {
	im := &importer{opt: o}
	im.topo()
	im.matrix()
	if len(im.errs) > 0 {
		sort.SliceStable(im.errs, func(i, j int) bool {
			a, b := im.errs[i], im.errs[j]
			return a.File < b.File || a.File == b.File && a.Line < b.Line
		})
		return nil, im.errs
	}
	return &Result{YAML: im.render(), Notes: im.notes}, nil
}

type importer struct {
	opt   Options
	errs  topology.Errors
	notes []string
	nodes int
	tiers []tier
	pod   int // hosts of a POD
	conns []conn
}

// tier is one level of switches and the links below it.
type tier struct {
	line        int
	rate        clock.Rate
	down, up    int // ports
	bundle      int // parallel links of a pair below
	over        int // oversubscription as written, 0 = not
	delay, pipe clock.Duration
}

// conn is one connection of the matrix.
type conn struct {
	line, src, dst int
	size           int64
	start          clock.Duration
}

func (im *importer) fail(file string, line, col int, field, value, msg, hint string) {
	if len(im.errs) < maxNotes {
		im.errs = append(im.errs, &topology.Error{File: file, Line: line, Col: col, Field: field, Value: value, Msg: msg, Hint: hint})
	}
}

func (im *importer) note(file string, line int, format string, a ...any) {
	if len(im.notes) < maxNotes {
		im.notes = append(im.notes, fmt.Sprintf("%s:%d:1: ", file, line)+fmt.Sprintf(format, a...))
	}
}

// contradict is an error, or in lenient mode a note.
func (im *importer) contradict(file string, line int, field, value, msg, lenient string) {
	if im.opt.Lenient {
		im.note(file, line, "%s: %s; %s", field, msg, lenient)
		return
	}
	im.fail(file, line, 1, field, value, msg, "")
}

// row is a line with content, comments taken off.
type row struct {
	line int
	f    []string
}

func split(text []byte) []row {
	var out []row
	for i, l := range strings.Split(string(text), "\n") {
		l, _, _ = strings.Cut(l, "#")
		if f := strings.Fields(l); len(f) > 0 {
			out = append(out, row{i + 1, f})
		}
	}
	return out
}

// count reads a whole number lo..hi.
func count(s string, lo, hi int) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= lo && n <= hi
}
