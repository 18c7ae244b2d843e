package topology

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds on input that may be hostile.
const (
	maxFileBytes = 64 << 20
	maxDepth     = 48
	maxNodes     = 8 << 20
)

type nodeKind uint8

const (
	nNull nodeKind = iota
	nScalar
	nMap
	nSeq
)

// node is a YAML value with its place. Scalars stay text: what they mean is
// the schema's business, and a value written 1e-9 is never a float here.
type node struct {
	kind      nodeKind
	file      string
	line, col int
	text      string
	keys      []entry // nMap, in file order
	items     []*node // nSeq
	pruned    bool    // a mistake that has been told stood here
}

// entry is a key of a mapping.
type entry struct {
	key       string
	line, col int
	val       *node
}

func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for i := range n.keys {
		if n.keys[i].key == key {
			return n.keys[i].val
		}
	}
	return nil
}

// path returns the node under dotted keys, nil when a step is missing.
func (n *node) path(keys ...string) *node {
	for _, k := range keys {
		n = n.get(k)
	}
	return n
}

// set replaces or appends a key.
func (n *node) set(key string, v *node) {
	for i := range n.keys {
		if n.keys[i].key == key {
			n.keys[i].val = v
			n.keys[i].line, n.keys[i].col = v.line, v.col
			return
		}
	}
	n.keys = append(n.keys, entry{key, v.line, v.col, v})
}

func (n *node) del(key string) {
	for i := range n.keys {
		if n.keys[i].key == key {
			n.keys = append(n.keys[:i:i], n.keys[i+1:]...)
			return
		}
	}
}

// pos renders file:line:column.
func (n *node) pos() string { return fmt.Sprintf("%s:%d:%d", n.file, n.line, n.col) }

// reader turns one file's text into a tree and collects mistakes.
type reader struct {
	file    string
	errs    Errors
	anchors map[string]*node
	count   int
}

func (r *reader) fail(line, col int, field, value, msg, hint string) {
	if len(r.errs) < maxErrors {
		r.errs = append(r.errs, &Error{r.file, line, col, field, value, msg, hint})
	}
}

// parseTree reads YAML text. The tree is a mapping even when errors are
// returned.
func parseTree(file string, text []byte) (root *node, errs Errors) {
	r := &reader{file: file, anchors: map[string]*node{}}
	root = &node{kind: nMap, file: file, line: 1, col: 1}
	if !r.sane(text) {
		return root, r.errs
	}
	f := r.parse(text)
	if f == nil {
		return root, r.errs
	}
	docs := 0
	for _, d := range f.Docs {
		if d.Body == nil || d.Body.Type() == ast.CommentType {
			continue
		}
		if docs++; docs > 1 {
			p := d.Body.GetToken().Position
			r.fail(p.Line, p.Column, "", "", "a fabric file is one YAML document", "")
			break
		}
		n := r.convert(d.Body, "", 0)
		switch n.kind {
		case nMap:
			root = n
		case nNull:
		default:
			r.fail(n.line, n.col, "", n.text, "a fabric file is a mapping of keys such as topology: and workload:", "")
		}
	}
	return root, r.errs
}

// sane refuses text that would make the YAML library recurse without bound.
func (r *reader) sane(text []byte) bool {
	if len(text) > maxFileBytes {
		r.fail(1, 1, "", "", fmt.Sprintf("file has %d bytes; the limit is %d", len(text), maxFileBytes), "")
		return false
	}
	line, depth, lead, start := 1, 0, 0, true
	for i, c := range text {
		switch c {
		case '\n':
			line, lead, start = line+1, 0, true
			continue
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		case '-', '?', '!', '&', '*', ':':
			if start {
				lead++
			}
		case ' ', '\t':
		case 0:
			r.fail(line, 1, "", "", "a NUL byte is not text", "")
			return false
		default:
			if i > 0 && (text[i-1] == ' ' || text[i-1] == '\n') {
				start = false
			}
		}
		if depth > maxDepth*4 || lead > maxDepth*4 {
			r.fail(line, 1, "", "", "nested too deeply", "")
			return false
		}
	}
	return true
}

// parse calls the YAML library; its panics on strange input become errors.
func (r *reader) parse(text []byte) (f *ast.File) {
	defer func() {
		if p := recover(); p != nil {
			f = nil
			r.fail(1, 1, "", "", "not valid YAML", "")
		}
	}()
	f, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err == nil {
		return f
	}
	line, col, msg := 1, 1, err.Error()
	var at interface {
		error
		GetToken() *token.Token
		GetMessage() string
	}
	if errors.As(err, &at) {
		msg = at.GetMessage()
		if t := at.GetToken(); t != nil && t.Position != nil {
			line, col = t.Position.Line, t.Position.Column
		}
	}
	msg, _, _ = strings.Cut(msg, "\n")
	r.fail(line, col, "", "", "not valid YAML: "+msg, "")
	return nil
}

func (r *reader) at(n ast.Node) *node {
	out := &node{file: r.file, line: 1, col: 1}
	if t := n.GetToken(); t != nil && t.Position != nil {
		out.line, out.col = t.Position.Line, t.Position.Column
	}
	return out
}

// convert makes a node of the library's tree, within bounds.
func (r *reader) convert(n ast.Node, field string, depth int) *node {
	if n == nil {
		return &node{kind: nNull, file: r.file, line: 1, col: 1}
	}
	out := r.at(n)
	if r.count++; r.count > maxNodes || depth > maxDepth {
		if len(r.errs) == 0 || r.errs[len(r.errs)-1].Msg != "too deep or too large" {
			r.fail(out.line, out.col, field, "", "too deep or too large", "")
		}
		return out
	}
	switch v := n.(type) {
	case *ast.NullNode:
	case *ast.MappingNode:
		out.kind = nMap
		for _, kv := range v.Values {
			r.pair(out, kv, field, depth)
		}
		if len(out.keys) > 0 && !v.IsFlowStyle {
			out.line, out.col = out.keys[0].line, out.keys[0].col
		}
	case *ast.MappingValueNode:
		out.kind = nMap
		r.pair(out, v, field, depth)
		if len(out.keys) > 0 {
			out.line, out.col = out.keys[0].line, out.keys[0].col
		}
	case *ast.SequenceNode:
		out.kind = nSeq
		for i, x := range v.Values {
			out.items = append(out.items, r.convert(x, fmt.Sprintf("%s[%d]", field, i), depth+1))
		}
	case *ast.AnchorNode:
		val := r.convert(v.Value, field, depth+1)
		r.anchors[v.Name.String()] = val
		return val
	case *ast.AliasNode:
		return r.alias(v, out, field)
	case *ast.LiteralNode:
		out.kind, out.text = nScalar, v.Value.Value
	case *ast.StringNode:
		out.kind, out.text = nScalar, v.Value
	case *ast.TagNode:
		r.fail(out.line, out.col, field, "", "YAML tags are not used in a fabric file", "")
	case ast.ScalarNode:
		out.kind, out.text = nScalar, n.GetToken().Value
	default:
		r.fail(out.line, out.col, field, "", "this kind of YAML value is not used in a fabric file", "")
	}
	return out
}

// pair adds one key of a mapping; a repeated key is a mistake.
func (r *reader) pair(m *node, kv *ast.MappingValueNode, field string, depth int) {
	k := r.at(kv.Key)
	var key string
	switch x := kv.Key.(type) {
	case *ast.StringNode:
		key = x.Value
	case *ast.MergeKeyNode:
		r.fail(k.line, k.col, field, "<<", "merge keys are not used; give overlays with -f, or settings under all:", "")
		return
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		key = kv.Key.GetToken().Value
	default:
		r.fail(k.line, k.col, field, "", "a key must be a plain word or number", "")
		return
	}
	sub := join(field, key)
	if old := m.get(key); old != nil {
		r.fail(k.line, k.col, sub, "", fmt.Sprintf("given twice; first at line %d", old.line), "")
		return
	}
	val := r.convert(kv.Value, sub, depth+1)
	if val.kind == nNull {
		val.line, val.col = k.line, k.col
	}
	m.keys = append(m.keys, entry{key, k.line, k.col, val})
}

// alias copies what an anchor named; the copy counts against the bounds.
func (r *reader) alias(v *ast.AliasNode, out *node, field string) *node {
	target := r.anchors[v.Value.String()]
	if target == nil {
		r.fail(out.line, out.col, field, "*"+v.Value.String(), "no such anchor before this place", "")
		return out
	}
	r.count += size(target, maxNodes-r.count)
	return target
}

// size counts the nodes of a tree, giving up above limit.
func size(n *node, limit int) int {
	c := 1
	for i := range n.keys {
		if c > limit {
			return c
		}
		c += size(n.keys[i].val, limit-c)
	}
	for _, x := range n.items {
		if c > limit {
			return c
		}
		c += size(x, limit-c)
	}
	return c
}

func join(field, key string) string {
	if field == "" {
		return key
	}
	return field + "." + key
}
