// Package intake is what importers of other simulators' text files share: rows
// of words, and errors and notes that name their place. It knows none of the
// formats. Start at [Log].
package intake

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/rocemu/rocemu/topology"
)

// File is one input text.
type File struct {
	Name string
	Text []byte
}

// Result is the fabric file and what a reader should know about it.
type Result struct {
	YAML  []byte
	Notes []string // file:line:column: what was changed, skipped or ignored
}

// most bounds errors and notes, since input may be hostile.
const most = 500

// Log collects what is wrong with the input and what was changed.
type Log struct {
	Lenient bool // contradictions are notes
	Errs    topology.Errors
	Notes   []string
}

// Fail adds an error.
func (l *Log) Fail(file string, line, col int, field, value, msg, hint string) {
	if len(l.Errs) < most {
		l.Errs = append(l.Errs, &topology.Error{File: file, Line: line, Col: col, Field: field, Value: value, Msg: msg, Hint: hint})
	}
}

// Note adds a note.
func (l *Log) Note(file string, line int, format string, a ...any) {
	if len(l.Notes) < most {
		l.Notes = append(l.Notes, fmt.Sprintf("%s:%d:1: ", file, line)+fmt.Sprintf(format, a...))
	}
}

// Contradict adds an error, or in lenient mode a note.
func (l *Log) Contradict(file string, line int, field, value, msg, lenient string) {
	if l.Lenient {
		l.Note(file, line, "%s: %s; %s", field, msg, lenient)
		return
	}
	l.Fail(file, line, 1, field, value, msg, "")
}

// Err is all errors in the order of their places, nil without any.
func (l *Log) Err() error {
	if len(l.Errs) == 0 {
		return nil
	}
	sort.SliceStable(l.Errs, func(i, j int) bool {
		a, b := l.Errs[i], l.Errs[j]
		return a.File < b.File || a.File == b.File && a.Line < b.Line
	})
	return l.Errs
}

// Row is a line with content.
type Row struct {
	Line int
	F    []string
}

// Split returns the lines that have words; what follows comment, if that is not
// empty, is no content.
func Split(text []byte, comment string) []Row {
	var out []Row
	for i, l := range strings.Split(string(text), "\n") {
		if comment != "" {
			l, _, _ = strings.Cut(l, comment)
		}
		if f := strings.Fields(l); len(f) > 0 {
			out = append(out, Row{i + 1, f})
		}
	}
	return out
}

// Count reads a whole number lo..hi.
func Count(s string, lo, hi int) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= lo && n <= hi
}
