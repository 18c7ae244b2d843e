package report

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/parser"
)

// Expectation is one line of a fabric file's expect section and its place
// (file:line:column).
type Expectation struct{ Expr, Pos string }

// Names are the keys that a run's result will have. An expression that asks
// for another one is refused before the run.
type Names struct {
	Flows    []string
	RNICs    []string
	Switches map[string][]string // switch → its port numbers
	Faults   []string
}

// Expect is a compiled expect section.
type Expect struct {
	lines []expectLine
}

type expectLine struct {
	Expectation
	ast          *cel.Ast
	prg          cel.Program
	names        map[string]bool // that occur in it, the result's fields among them
	namesVerdict bool
}

// CompileExpect checks every expression against the result's shape and the
// run's names and returns all errors at once.
func CompileExpect(exprs []Expectation, n Names) (*Expect, error) {
	out := &Expect{}
	if len(exprs) == 0 {
		return out, nil
	}
	e, err := newEnv()
	if err != nil {
		return nil, fmt.Errorf("expect: %w", err)
	}
	var errs []error
	for _, x := range exprs {
		line, err := compileLine(e, x, n)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out.lines = append(out.lines, line)
	}
	return out, errors.Join(errs...)
}

func compileLine(e *cel.Env, x Expectation, n Names) (expectLine, error) {
	fail := func(text string) (expectLine, error) {
		return expectLine{}, fmt.Errorf("%s: expect: %q: %s", x.Pos, x.Expr, text)
	}
	a, iss := e.Compile(x.Expr)
	if iss.Err() != nil {
		var t []string
		for _, i := range iss.Errors() {
			t = append(t, fmt.Sprintf("at column %d: %s%s", i.Location.Column()+1, i.Message, hintFor(e, x.Expr, i.Message)))
		}
		return fail(strings.Join(t, "; "))
	}
	if a.OutputType() != cel.BoolType {
		return fail(fmt.Sprintf("is a %s; an expectation must be true or false", a.OutputType()))
	}
	c := keyCheck{names: n}
	ast.PostOrderVisit(a.NativeRep().Expr(), ast.NewExprVisitor(c.visit))
	if len(c.bad) > 0 {
		return fail(strings.Join(c.bad, "; "))
	}
	prg, err := e.Program(a, cel.EvalOptions(cel.OptTrackState))
	if err != nil {
		return fail(err.Error())
	}
	return expectLine{Expectation: x, ast: a, prg: prg, names: namesIn(a), namesVerdict: c.verdict}, nil
}

// namesIn lists the variables of an expression.
func namesIn(a *cel.Ast) map[string]bool {
	m := map[string]bool{}
	ast.PostOrderVisit(a.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.IdentKind {
			m[e.AsIdent()] = true
		}
	}))
	return m
}

// newEnv declares the result's fields as variables. Arithmetic and equality
// are declared anew, so that whole and fractional numbers mix.
func newEnv() (*cel.Env, error) {
	base, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	t := reflect.TypeFor[Result]()
	s := newShape(base, t)
	sub := env.NewLibrarySubset()
	for _, f := range []string{operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Equals, operators.NotEquals} {
		sub.AddExcludedFunctions(env.NewFunction(f))
	}
	opts := []cel.EnvOption{
		cel.StdLib(cel.StdLibSubset(sub)), cel.CustomTypeProvider(s), cel.CustomTypeAdapter(base),
		cel.CrossTypeNumericComparisons(true),
		arith(operators.Add, "plus", types.Int.Add, types.Double.Add),
		arith(operators.Subtract, "minus", types.Int.Subtract, types.Double.Subtract),
		arith(operators.Multiply, "times", types.Int.Multiply, types.Double.Multiply),
		arith(operators.Divide, "over", types.Int.Divide, types.Double.Divide),
		equality(operators.Equals, "eq"), equality(operators.NotEquals, "ne"),
	}
	for i := range t.NumField() {
		if key := jsonKey(t.Field(i)); key != "" {
			opts = append(opts, cel.Variable(key, s.typeOf(t.Field(i).Type)))
		}
	}
	return cel.NewCustomEnv(opts...)
}

// arith declares op for every pair of int and double; a pair of ints stays int.
func arith(op, id string, ints func(types.Int, ref.Val) ref.Val, doubles func(types.Double, ref.Val) ref.Val) cel.EnvOption {
	i, d := cel.IntType, cel.DoubleType
	return cel.Function(op,
		cel.Overload(id+"_ii", []*cel.Type{i, i}, i), cel.Overload(id+"_dd", []*cel.Type{d, d}, d),
		cel.Overload(id+"_id", []*cel.Type{i, d}, d), cel.Overload(id+"_di", []*cel.Type{d, i}, d),
		cel.SingletonBinaryBinding(func(l, r ref.Val) ref.Val {
			li, lok := l.(types.Int)
			if _, rok := r.(types.Int); lok && rok {
				return ints(li, r)
			}
			ld, lok := l.ConvertToType(types.DoubleType).(types.Double)
			rd := r.ConvertToType(types.DoubleType)
			if !lok {
				return types.MaybeNoSuchOverloadErr(l)
			}
			return doubles(ld, rd)
		}))
}

// equality declares == or != for the kinds that occur in results; the
// interpreter itself compares across kinds of numbers.
func equality(op, id string) cel.EnvOption {
	num := []*cel.Type{cel.IntType, cel.DoubleType, cel.UintType}
	var o []cel.FunctionOpt
	for _, a := range num {
		for _, b := range num {
			o = append(o, cel.Overload(id+"_"+a.TypeName()+"_"+b.TypeName(), []*cel.Type{a, b}, cel.BoolType))
		}
	}
	for _, t := range []*cel.Type{cel.StringType, cel.BoolType, cel.ListType(cel.StringType)} {
		o = append(o, cel.Overload(id+"_"+t.TypeName(), []*cel.Type{t, t}, cel.BoolType))
	}
	return cel.Function(op, o...)
}

// Judge evaluates all expectations on r and sets the verdict: any that is
// false (or cannot be evaluated) makes it "expectation failed", with the
// expression and the actual values. When one names the verdict and all hold,
// the exit code is 0 whatever the verdict.
func (e *Expect) Judge(r *Result) error {
	if len(e.lines) == 0 {
		return nil
	}
	var failed []string
	named, asked := false, map[string]bool{}
	for i := range e.lines {
		maps.Copy(asked, e.lines[i].names)
	}
	vars := viewOf(reflect.ValueOf(r).Elem(), asked) // of a large fabric, to view all takes longer than to merge it
	for i := range e.lines {
		named = named || e.lines[i].namesVerdict
		if text := e.lines[i].eval(vars); text != "" {
			failed = append(failed, text)
		}
	}
	if len(failed) > 0 {
		r.Raise(ExpectationFailed, strings.Join(failed, "; "))
		r.Exit = ExitFailed
		return nil
	}
	if named {
		r.Exit = ExitOK
	}
	return nil
}

// eval returns "" when the expectation holds, else what is wrong.
func (l *expectLine) eval(vars map[string]any) string {
	v, det, err := l.prg.Eval(vars)
	if err != nil {
		return fmt.Sprintf("%s: %s: %v", l.Pos, l.Expr, err)
	}
	if v == types.True {
		return ""
	}
	var seen []string
	l.operands(l.ast.NativeRep().Expr(), det, &seen)
	text := fmt.Sprintf("%s: %s is false", l.Pos, l.Expr)
	if len(seen) > 0 {
		text += ": " + strings.Join(seen, ", ")
	}
	return text
}

// operands appends "expression = value" for what the expression compares,
// looking through logic and arithmetic but not into macros.
func (l *expectLine) operands(e ast.Expr, det *cel.EvalDetails, out *[]string) {
	if e.Kind() == ast.LiteralKind || e.Kind() == ast.ComprehensionKind {
		return
	}
	if e.Kind() == ast.CallKind {
		switch c := e.AsCall(); c.FunctionName() {
		case operators.Index:
		default:
			for _, a := range c.Args() {
				l.operands(a, det, out)
			}
			return
		}
	}
	v, ok := det.State().Value(e.ID())
	text, err := parser.Unparse(e, l.ast.NativeRep().SourceInfo())
	if !ok || err != nil {
		return
	}
	item := fmt.Sprintf("%s = %v", text, v.Value())
	for _, s := range *out {
		if s == item {
			return
		}
	}
	*out = append(*out, item)
}
