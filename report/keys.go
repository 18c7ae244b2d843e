package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/parser"
)

// keyCheck finds literal keys and words in an expression that no result of
// this run can have.
type keyCheck struct {
	names   Names
	verdict bool // the expression names the verdict
	bad     []string
}

var classKeys = []string{"0", "1", "2", "3", "4", "5", "6", "7"}

var verdictNames = []string{Complete, Limit, Stalled, ExpectationFailed, Failed}

func (c *keyCheck) visit(e ast.Expr) {
	switch e.Kind() {
	case ast.IdentKind:
		c.verdict = c.verdict || e.AsIdent() == "verdict"
	case ast.SelectKind:
		// A map may also be read as map.key.
		s := e.AsSelect()
		c.key(s.Operand(), s.FieldName())
	case ast.CallKind:
		call := e.AsCall()
		if len(call.Args()) != 2 {
			return
		}
		a, b := call.Args()[0], call.Args()[1]
		switch call.FunctionName() {
		case operators.Index:
			if k, ok := stringLit(b); ok {
				c.key(a, k)
			}
		case operators.Equals, operators.NotEquals:
			c.word(a, b)
			c.word(b, a)
		}
	}
}

// stringLit returns a string literal's value.
func stringLit(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().Value().(string)
	return s, ok
}

// field returns the last name of a path: the identifier or selected field.
func field(e ast.Expr) string {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent()
	case ast.SelectKind:
		return e.AsSelect().FieldName()
	}
	return ""
}

// key checks the literal key of the map that e denotes.
func (c *keyCheck) key(e ast.Expr, key string) {
	switch name := field(e); name {
	case "flows":
		if e.Kind() == ast.IdentKind {
			c.among("workload line", key, c.names.Flows)
		}
	case "rnics":
		c.among("RNIC", key, c.names.RNICs)
	case "switches":
		var all []string
		for n := range c.names.Switches {
			all = append(all, n)
		}
		slices.Sort(all)
		c.among("switch", key, all)
	case "faults":
		c.among("fault", key, c.names.Faults)
	case "drops_by_reason":
		c.among("drop reason", key, reasonNames[:])
	case "statuses":
		c.among("status", key, statusNames[:])
	case "pfc", "pg", "queue", "watchdog":
		c.among("class", key, classKeys)
	case "ports":
		if sw := e.AsSelect().Operand(); sw.Kind() == ast.CallKind && len(sw.AsCall().Args()) == 2 {
			if dev, ok := stringLit(sw.AsCall().Args()[1]); ok && c.names.Switches[dev] != nil {
				c.among("port of "+dev, key, c.names.Switches[dev])
			}
		}
	}
}

// word checks a string that is compared with the verdict or a status.
func (c *keyCheck) word(path, lit ast.Expr) {
	s, ok := stringLit(lit)
	if !ok {
		return
	}
	switch field(path) {
	case "verdict":
		c.among("verdict", s, verdictNames)
	case "status":
		c.among("status", s, statusNames[:])
	}
}

func (c *keyCheck) among(what, key string, known []string) {
	if slices.Contains(known, key) {
		return
	}
	t := fmt.Sprintf("no %s is named %q", what, key)
	switch near := nearest(key, known); {
	case len(known) == 0:
		t += "; this run has none"
	case near != "":
		t += fmt.Sprintf("; did you mean %q?", near)
	case len(known) <= 20:
		t += "; known: " + strings.Join(known, ", ")
	}
	c.bad = append(c.bad, t)
}

const (
	undefField = `undefined field '([^']*)'`
	undefIdent = `undeclared reference to '([^']*)'`
)

// hintFor proposes a name when CEL's message says that one is unknown in expr.
func hintFor(e *cel.Env, expr, msg string) string {
	if m := regexp.MustCompile(undefField).FindStringSubmatch(msg); m != nil {
		known := fieldsBeside(e, expr, m[1])
		if n := likeliest(m[1], known); n != "" {
			return fmt.Sprintf("; did you mean %q?", n)
		}
		if len(known) <= 30 {
			return "; known here: " + strings.Join(known, ", ")
		}
	}
	if m := regexp.MustCompile(undefIdent).FindStringSubmatch(msg); m != nil {
		if n := likeliest(m[1], topFields()); n != "" {
			return fmt.Sprintf("; did you mean %q?", n)
		}
		return "; known: " + strings.Join(topFields(), ", ")
	}
	return ""
}

// fieldsBeside lists the fields that the object has of which expr asks for an
// unknown one; those of every object when it cannot be told which it is.
func fieldsBeside(e *cel.Env, expr, unknown string) []string {
	parsed, iss := e.Parse(expr)
	if iss.Err() != nil {
		return allFields()
	}
	var known []string
	ast.PostOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		if known != nil || x.Kind() != ast.SelectKind || x.AsSelect().FieldName() != unknown {
			return
		}
		text, err := parser.Unparse(x.AsSelect().Operand(), parsed.NativeRep().SourceInfo())
		if err != nil {
			return
		}
		if object, iss := e.Compile(text); iss.Err() == nil {
			known, _ = e.CELTypeProvider().FindStructFieldNames(object.OutputType().TypeName())
		}
	}))
	if len(known) == 0 {
		return allFields()
	}
	return known
}

// likeliest is the nearest known word, or the shortest that begins with s or
// has it as a part; never s itself.
func likeliest(s string, known []string) string {
	known = slices.DeleteFunc(slices.Clone(known), func(k string) bool { return k == s })
	if n := nearest(s, known); n != "" || len(s) < 3 {
		return n
	}
	best := ""
	for _, part := range []func(string, string) bool{strings.HasPrefix, strings.Contains} {
		for _, k := range known {
			if part(k, s) && (best == "" || len(k) < len(best)) {
				best = k
			}
		}
		if best != "" {
			break
		}
	}
	return best
}

// nearest returns the known word with the smallest edit distance to s, if it
// is near enough to be a slip: at most a third of the letters or 2, never all.
func nearest(s string, known []string) string {
	best, at := min(max(2, len(s)/3)+1, len(s)), ""
	for _, k := range known {
		if d := distance(s, k); d < best {
			best, at = d, k
		}
	}
	return at
}

// distance is the Levenshtein distance of two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
