package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
)

const (
	module       = "github.com/rocemu/rocemu"
	maxFuncLines = 70
	maxFileLines = 500
)

// source is one parsed Go file; dir is its package's path below the module.
type source struct {
	dir, file string
	test      bool
	lines     int
	fset      *token.FileSet
	ast       *ast.File
}

func (s *source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.file, s.fset.Position(n.Pos()).Line)
}

// sources parses every Go file of the repository.
func sources(t *testing.T) []*source {
	t.Helper()
	root := filepath.Join("..", "..")
	var out []*source
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); n == "testdata" || len(n) > 2 && n[0] == '.' {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if ast.IsGenerated(f) {
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		out = append(out, &source{
			dir: path.Dir(rel), file: rel, test: strings.HasSuffix(rel, "_test.go"),
			lines: fset.File(f.Pos()).LineCount(), fset: fset, ast: f,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 20 {
		t.Fatalf("found only %d Go files: wrong root?", len(out))
	}
	return out
}

// below tells whether dir is root or lies under it.
func below(dir, root string) bool { return dir == root || strings.HasPrefix(dir, root+"/") }

// rule says what a package and those below it may import of this module. The
// first rule that fits a package counts; a package may always import packages
// below itself.
type rule struct {
	dir   string
	allow []string // nil: nothing; "*": everything but cmd
}

var importTable = []rule{
	{"clock", nil},
	{"nodes/wire", []string{"clock"}},
	{"nodes/record", []string{"clock"}},
	{"internal/natural", nil},
	{"report", []string{"clock", "internal/natural"}},
	{"topology", []string{"clock", "internal/natural"}},
	{"actors/snap", []string{"clock", "nodes/wire", "nodes/record"}},
	{"actors", []string{"actors", "clock", "nodes/wire"}},
	{"nodes/rnic/qp", []string{"clock", "nodes/wire", "nodes/record", "actors/snap"}},
	{"nodes/rnic/cc", []string{"clock", "nodes/wire", "nodes/record", "actors/snap"}},
	{"nodes", []string{"actors", "clock", "nodes", "topology", "report"}},
	{"telemetry", []string{"actors", "clock", "nodes", "topology", "report", "sim"}},
	{"sweep", []string{"clock", "topology", "report", "sim"}},
	{"examples", []string{"topology"}},
	{"deploy", []string{"topology"}},
	{"docs/model", nil}, // models of the protocols, checked by themselves
	{"sim", []string{"actors", "clock", "nodes", "topology", "report"}},
	{"coord", []string{"actors", "clock", "nodes", "topology", "report", "sim", "telemetry"}},
	{"cmd", []string{"*", "cmd"}},
	{"test", []string{"*"}},
	{"internal", []string{"*"}},
}

func TestImportTable(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		r := ruleFor(s.dir)
		if r == nil {
			t.Errorf("%s: package %s is not in the import table", s.file, s.dir)
			continue
		}
		for _, im := range s.ast.Imports {
			p, _ := strconv.Unquote(im.Path.Value)
			if !below(p, module) {
				continue
			}
			if dep := strings.TrimPrefix(p, module+"/"); !mayImport(s.dir, dep, r) {
				t.Errorf("%s: %s may not import %s (allowed: %v)", s.at(im), s.dir, dep, r.allow)
			}
		}
	}
}

func ruleFor(dir string) *rule {
	for i := range importTable {
		if below(dir, importTable[i].dir) {
			return &importTable[i]
		}
	}
	return nil
}

func mayImport(dir, dep string, r *rule) bool {
	if below(dep, dir) || below(dep, r.dir) && below(dir, r.dir) {
		return true
	}
	for _, a := range r.allow {
		if a == "*" && !below(dep, "cmd") || a != "*" && below(dep, a) {
			return true
		}
	}
	return false
}

// model are the packages in which everything must follow from the input alone.
var model = []string{"clock", "nodes", "actors", "topology", "report"}

// exempt lists files and packages that may use goroutines and locks (the
// workers of the engine, tables made once), or floating point (output and
// parsing). The carrier over NATS is the network: nothing of this binds it.
var exempt = map[string][]string{
	"go":    {"actors/pool.go", "actors/engine.go"},
	"sync":  {"actors/pool.go", "actors/engine.go", "topology"},
	"float": {"clock/clock.go", "topology", "report"},
	"clock": {"actors/actortest"}, // delays threads on purpose
}

func isModel(dir string) bool {
	if below(dir, "actors/natsbus") {
		return false
	}
	for _, m := range model {
		if below(dir, m) {
			return true
		}
	}
	return false
}

func isExempt(what string, s *source) bool {
	for _, e := range exempt[what] {
		if s.file == e || below(s.dir, e) {
			return true
		}
	}
	return false
}

var realClock = map[string]bool{
	"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true, "AfterFunc": true, "Tick": true, "NewTimer": true, "NewTicker": true,
}

// TestDeterminism bans below the engine what would make a result depend on
// more than the plan.
func TestDeterminism(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || !isModel(s.dir) {
			continue
		}
		report := func(what string, n ast.Node, text string) {
			if !isExempt(what, s) {
				t.Errorf("%s: %s is banned in %s", s.at(n), text, s.dir)
			}
		}
		for _, im := range s.ast.Imports {
			switch p, _ := strconv.Unquote(im.Path.Value); p {
			case "sync", "sync/atomic":
				report("sync", im, p)
			case "math/rand", "math/rand/v2", "crypto/rand":
				report("rand", im, p)
			}
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				report("go", n, "a go statement")
			case *ast.Ident:
				if n.Name == "float64" || n.Name == "float32" {
					report("float", n, n.Name)
				}
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				if !ok {
					return true
				}
				if x.Name == "time" && realClock[n.Sel.Name] {
					report("clock", n, "time."+n.Sel.Name)
				}
				if x.Name == "fmt" && strings.HasPrefix(n.Sel.Name, "Print") {
					report("print", n, "fmt."+n.Sel.Name)
				}
			}
			return true
		})
	}
}

func TestLengths(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		if s.lines > maxFileLines {
			t.Errorf("%s: %d lines, at most %d", s.file, s.lines, maxFileLines)
		}
		for _, d := range s.ast.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			if n := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1; n > maxFuncLines {
				t.Errorf("%s: func %s has %d lines, at most %d", s.at(f), f.Name.Name, n, maxFuncLines)
			}
		}
	}
}

// TestComments wants a comment on every package and every exported name.
func TestComments(t *testing.T) {
	doc := map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		doc[s.dir] = doc[s.dir] || s.ast.Doc != nil
		for _, d := range s.ast.Decls {
			for _, name := range undocumented(d) {
				t.Errorf("%s: %s has no comment", s.at(d), name)
			}
		}
	}
	var dirs []string
	for d := range doc {
		dirs = append(dirs, d)
	}
	sort.Strings(dirs)
	for _, d := range dirs {
		if !doc[d] {
			t.Errorf("package %s has no comment", d)
		}
	}
}

// undocumented lists the exported functions and types of a declaration that
// have no comment. Methods are left to their type's comment and their author.
func undocumented(d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && d.Recv == nil {
			return []string{d.Name.Name}
		}
	case *ast.GenDecl:
		var out []string
		for _, sp := range d.Specs {
			if ts, ok := sp.(*ast.TypeSpec); ok && ts.Name.IsExported() && d.Doc == nil && ts.Doc == nil {
				out = append(out, ts.Name.Name)
			}
		}
		return out
	}
	return nil
}

// TestRulesBite proves that the checks above can fail.
func TestRulesBite(t *testing.T) {
	for _, c := range []struct {
		dir, dep string
		want     bool
	}{
		{"clock", "nodes/wire", false},
		{"nodes/wire", "clock", true},
		{"report", "topology", false},
		{"nodes/rnic/qp", "nodes/port", false},
		{"nodes/rnic", "nodes/rnic/qp", true},
		{"sim", "cmd/emuctl", false},
		{"actors", "nodes/fabric", false},
		{"test/chaos", "cmd/emud", false},
		{"topology/hpcc", "topology", true},
		{"cmd/emud", "coord", true},
	} {
		if r := ruleFor(c.dir); r == nil || mayImport(c.dir, c.dep, r) != c.want {
			t.Errorf("%s importing %s: allowed should be %v", c.dir, c.dep, c.want)
		}
	}
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc A() {}\ntype B int\nfunc (b B) String() string { return \"\" }\n", parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range f.Decls {
		got = append(got, undocumented(d)...)
	}
	if strings.Join(got, " ") != "A B" {
		t.Errorf("undocumented names: %v", got)
	}
}
