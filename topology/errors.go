package topology

import (
	"fmt"
	"sort"
	"strings"
)

// Error is one mistake in a fabric file. It names the place, the key, what was
// written, what is allowed and, when something close exists, the likely
// intention.
type Error struct {
	File      string
	Line, Col int
	Field     string // dotted path of the key
	Value     string // what was written; empty when the key itself is the matter
	Msg       string // what is allowed
	Hint      string // nearest right spelling, or empty
}

// Error renders "file:line:column: field: value "x": allowed; did you mean "y"?".
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", e.File, e.Line, e.Col)
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	if e.Value != "" {
		fmt.Fprintf(&b, "value %q: ", clip(e.Value))
	}
	b.WriteString(e.Msg)
	if e.Hint != "" {
		fmt.Fprintf(&b, "; did you mean %q?", e.Hint)
	}
	return b.String()
}

// clip keeps hostile values from filling a terminal.
func clip(s string) string {
	if len(s) > 120 {
		return s[:117] + "..."
	}
	return s
}

// Errors are all mistakes found, in order of position.
type Errors []*Error

// Error joins the mistakes, one a line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// sorted orders the errors by file, line and column and drops repeats, which
// need not be neighbours: a --set is one place for all its keys.
func (es Errors) sorted() Errors {
	sort.SliceStable(es, func(i, j int) bool {
		a, b := es[i], es[j]
		if a.File != b.File {
			return a.File < b.File
		}
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Col < b.Col
	})
	out := es[:0]
	seen := map[Error]bool{}
	for _, e := range es {
		if seen[*e] {
			continue
		}
		seen[*e] = true
		out = append(out, e)
	}
	return out
}

// maxErrors bounds what one hostile file can make us collect.
const maxErrors = 1000

// Finding is a remark about a valid fabric: it runs, but probably not as meant.
type Finding struct {
	Code  string // stable, lower case with hyphens
	Where string // device, port or workload line
	Pos   string // file:line:column, or empty
	Text  string
}

// String renders the finding on one line.
func (f Finding) String() string {
	s := f.Code + ": " + f.Text
	if f.Where != "" {
		s = f.Where + ": " + s
	}
	if f.Pos != "" {
		s = f.Pos + ": " + s
	}
	return s
}

// Warning is a finding made while resolving.
type Warning = Finding

// nearest returns the candidate with the smallest edit distance to s, if it is
// close enough to be a likely typing mistake.
func nearest(s string, candidates []string) string {
	if len(s) > 64 {
		return ""
	}
	best, bestD := "", 1+(len(s)+2)/3
	for _, c := range candidates {
		if d := distance(strings.ToLower(s), strings.ToLower(c), bestD); d < bestD {
			best, bestD = c, d
		}
	}
	return best
}

// distance is the Damerau-Levenshtein distance (adjacent swaps count one),
// given up at limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
