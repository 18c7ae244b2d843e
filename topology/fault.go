package topology

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/rocemu/rocemu/clock"
)

// A fault has one text form everywhere: KIND TARGET key=value …; the keys are
// those of the mapping form, with the match keys beside the others.

// faultErr is a mistake in one key of a fault.
type faultErr struct{ key, value, msg, hint string }

// forOrCount is the one mistake that is about two keys.
const forOrCount = "give for or count, not both"

func (e *faultErr) Error() string {
	s := e.key + ": "
	if e.value != "" {
		s += fmt.Sprintf("value %q: ", clip(e.value))
	}
	s += e.msg
	if e.hint != "" {
		s += fmt.Sprintf("; did you mean %q?", e.hint)
	}
	return s
}

// ParseFault reads the text form. Names in it are not looked up; see
// [Plan.BindFault]. All mistakes are returned, joined.
func ParseFault(s string) (*Fault, error) {
	f, errs := parseFaultText(s)
	if len(errs) == 0 {
		return f, nil
	}
	joined := make([]error, len(errs))
	for i, e := range errs {
		joined[i] = e
	}
	return nil, errors.Join(joined...)
}

func parseFaultText(s string) (*Fault, []*faultErr) {
	if len(s) > 4096 {
		return nil, []*faultErr{{"fault", s, "is too long", ""}}
	}
	words := strings.Fields(s)
	if len(words) == 0 {
		return nil, []*faultErr{{"fault", " ", "must be KIND TARGET key=value …, such as drop rnic1:1 dir=out psn_index=3 count=1", ""}}
	}
	kv := [][2]string{{"kind", words[0]}}
	var errs []*faultErr
	for i, w := range words[1:] {
		k, v, ok := strings.Cut(w, "=")
		if !ok && i == 0 {
			k, v = "target", w
		} else if k == "kind" {
			k = "match.kind"
		} else if !ok || k == "target" {
			errs = append(errs, &faultErr{"fault", w, "must be key=value after the kind and the target", ""})
			continue
		}
		kv = append(kv, [2]string{k, v})
	}
	f, more := buildFault(kv)
	return f, append(errs, more...)
}

// faultFields are the keys that every kind takes.
var faultFields = []string{"name", "kind", "target", "at", "for", "count"}

var matchFields = []string{"flow", "qp", "opcode", "psn", "psn_index", "iteration", "ack", "nak", "rnr", "cnp", "kind", "dir"}

// buildFault makes a fault of key-value pairs; match keys may carry the prefix
// "match.", which match.kind needs: plain kind is the fault's.
func buildFault(kv [][2]string) (*Fault, []*faultErr) {
	f := &Fault{Dev: -1, Cable: -1, Peer: -1, NoAt: true}
	var errs []*faultErr
	bad := func(key, value, msg, hint string) { errs = append(errs, &faultErr{key, value, msg, hint}) }
	kind := findFaultKind(kv[0][1])
	if kind == nil {
		bad("kind", kv[0][1], "must be one of "+strings.Join(faultKindNames(), ", "), nearest(kv[0][1], faultKindNames()))
		return f, errs
	}
	f.Kind = kind.name
	seen := map[string]bool{}
	for _, p := range kv[1:] {
		k, v := p[0], p[1]
		if seen[k] {
			bad(k, v, "given twice", "")
			continue
		}
		seen[k] = true
		if e := f.assign(kind, k, v); e != nil {
			errs = append(errs, e)
		}
	}
	if len(kind.need) > 0 && !slices.ContainsFunc(kind.need, func(k string) bool { return seen[k] || f.Params[k] != "" }) {
		bad(kind.need[0], "", "missing for "+kind.name+": give "+strings.Join(kind.need, " or "), "")
	}
	if f.Target == "" {
		bad("target", "", "missing: a device, device:port, RNIC or flow", "")
	}
	if f.For > 0 && f.Count > 0 && !kind.match {
		bad("count", strconv.FormatInt(f.Count, 10), forOrCount, "")
	}
	if (f.Match.PSNIndex > 0 || f.Match.HasPSN) && !f.Match.anyIter && f.Match.Iteration == 0 {
		f.Match.Iteration = 1
	}
	return f, errs
}

// assign sets one key.
func (f *Fault) assign(kind *faultKind, k, v string) *faultErr {
	check := func(s *spec) *faultErr {
		if slices.Contains(s.words, v) && s.kind != kWord {
			return nil
		}
		if b := s.parse(v); b != nil {
			return &faultErr{k, quoteEmpty(v), b.msg, b.hint}
		}
		return nil
	}
	switch k {
	case "name", "target":
		if v == "" || strings.ContainsAny(v, " \t\n=") {
			return &faultErr{k, quoteEmpty(v), "must be a word without spaces or =", ""}
		}
		if k == "name" {
			f.Name = v
		} else {
			f.Target = v
		}
		return nil
	case "at", "for":
		if e := check(sDuration); e != nil {
			return e
		}
		d, _ := ParseDuration(v)
		switch {
		case k == "at":
			f.At, f.NoAt = clock.Time(d), false
		case d == 0:
			return &faultErr{k, v, "must be above 0; left out, it lasts to the end", ""}
		default:
			f.For = d
		}
		return nil
	case "count":
		e := check(intOf(1, 1<<62))
		f.Count, _ = strconv.ParseInt(v, 0, 64)
		return e
	}
	if p := kind.param(k); p != nil {
		return f.setParam(p, k, v)
	}
	return f.assignMatch(kind, k, v)
}

// setParam stores a parameter in canonical text.
func (f *Fault) setParam(p *paramSpec, k, v string) *faultErr {
	parts := []string{v}
	if p.list {
		parts = strings.Split(v, ",")
	}
	for i, x := range parts {
		x = strings.TrimSpace(x)
		if strings.ContainsAny(x, " \t\n=") {
			return &faultErr{k, x, "must be a word without spaces or =", ""}
		}
		if !slices.Contains(p.spec.words, x) || p.spec.kind == kWord {
			if b := p.spec.parse(x); b != nil {
				return &faultErr{k, quoteEmpty(x), b.msg, b.hint}
			}
		}
		parts[i] = canonical(p.spec, x)
	}
	if k == "opcode" {
		if _, ok := opcodeWords[parts[0]]; !ok && !slices.Contains(pauseOps, parts[0]) {
			names := append(opcodeNames(), pauseOps...)
			return &faultErr{k, v, "must be one of " + strings.Join(names, ", "), nearest(v, names)}
		}
	}
	if f.Params == nil {
		f.Params = map[string]string{}
	}
	f.Params[k] = strings.Join(parts, ",")
	return nil
}

// canonical is one spelling for equal values, so that texts compare.
func canonical(s *spec, v string) string {
	switch s.kind {
	case kRate:
		if r, err := ParseRate(v); err == nil {
			return r.String()
		}
	case kDuration:
		if d, err := ParseDuration(v); err == nil {
			return d.String()
		}
	case kSize:
		if n, err := ParseSize(v); err == nil {
			return strconv.FormatInt(n, 10) + "B"
		}
	case kInt:
		if n, bad := parseInt(v); bad == nil {
			return strconv.FormatInt(n, 10)
		}
	}
	return v
}

// matchSpecs are the value rules of the match keys, as in faultSpec.
var matchSpecs = map[string]*spec{
	"qp": intOf(0, 1<<24-1), "psn": intOf(0, 1<<24-1), "psn_index": intOf(1, 1<<32-1), "iteration": intOf(1, 1<<20).with("any"),
	"ack": intOf(1, 1<<32-1), "nak": intOf(1, 1<<32-1), "rnr": intOf(1, 1<<32-1), "cnp": intOf(1, 1<<32-1),
	"kind": wordOf(matchKinds...), "dir": dirSpec, "flow": sText,
}

// keys are the keys of a kind beside its name, kind and match.
func (k *faultKind) keys() []string {
	l := append([]string{}, faultFields[2:]...)
	for _, p := range k.params {
		l = append(l, p.name)
	}
	return l
}

func (f *Fault) assignMatch(kind *faultKind, k, v string) *faultErr {
	k = strings.TrimPrefix(k, "match.")
	known := kind.keys()
	if kind.match {
		known = append(known, matchFields...)
	}
	s := matchSpecs[k]
	if !kind.match || s == nil && k != "opcode" {
		return &faultErr{k, v, kind.name + " takes " + strings.Join(known, ", "), nearest(k, known)}
	}
	m := &f.Match
	m.Set = true
	if k == "opcode" {
		op, ok := opcodeWords[v]
		if !ok {
			return &faultErr{k, quoteEmpty(v), "must be one of " + strings.Join(opcodeNames(), ", "), nearest(v, opcodeNames())}
		}
		m.Op, m.HasOp = op, true
		return nil
	}
	if !slices.Contains(s.words, v) || s.kind == kWord {
		if b := s.parse(v); b != nil {
			return &faultErr{k, quoteEmpty(v), b.msg, b.hint}
		}
	}
	n, _ := strconv.ParseInt(v, 0, 64)
	switch k {
	case "flow":
		if strings.ContainsAny(v, " \t\n=") {
			return &faultErr{k, v, "must be a word without spaces or =", ""}
		}
		m.Flow = v
	case "qp":
		m.QPN, m.HasQP = uint32(n), true
	case "psn":
		m.PSN, m.HasPSN = uint32(n), true
	case "psn_index":
		m.PSNIndex = uint32(n)
	case "iteration":
		m.Iteration, m.anyIter = int(n), v == "any"
	case "ack":
		m.Ack = uint32(n)
	case "nak":
		m.Nak = uint32(n)
	case "rnr":
		m.RNR = uint32(n)
	case "cnp":
		m.CNP = uint32(n)
	case "kind":
		m.Kind = v
	case "dir":
		m.Dir = v
	}
	return nil
}

// String renders the text form; [ParseFault] reads it back to the same fault.
func (f *Fault) String() string {
	var b strings.Builder
	b.WriteString(f.Kind + " " + f.Target)
	put := func(k, v string) { b.WriteString(" " + k + "=" + v) }
	if f.Name != "" {
		put("name", f.Name)
	}
	if !f.NoAt {
		put("at", clock.Duration(f.At).String())
	}
	if f.For > 0 {
		put("for", f.For.String())
	}
	f.Match.render(put)
	if f.Count > 0 {
		put("count", strconv.FormatInt(f.Count, 10))
	}
	keys := make([]string, 0, len(f.Params))
	for k := range f.Params {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		put(k, f.Params[k])
	}
	return b.String()
}

func (m *Match) render(put func(k, v string)) {
	words := [][2]string{{"dir", m.Dir}, {"flow", m.Flow}, {"kind", m.Kind}}
	if m.HasOp {
		words = append(words, [2]string{"opcode", OpcodeName(m.Op)})
	}
	for _, w := range words {
		if w[1] != "" {
			put(w[0], w[1])
		}
	}
	if m.HasQP {
		put("qp", strconv.FormatUint(uint64(m.QPN), 10))
	}
	if m.HasPSN {
		put("psn", strconv.FormatUint(uint64(m.PSN), 10))
	}
	for _, x := range []struct {
		k string
		n uint32
	}{{"psn_index", m.PSNIndex}, {"ack", m.Ack}, {"nak", m.Nak}, {"rnr", m.RNR}, {"cnp", m.CNP}} {
		if x.n > 0 {
			put(x.k, strconv.FormatUint(uint64(x.n), 10))
		}
	}
	switch {
	case m.anyIter:
		put("iteration", "any")
	case m.Iteration > 0 && !(m.Iteration == 1 && (m.PSNIndex > 0 || m.HasPSN)):
		put("iteration", strconv.Itoa(m.Iteration))
	}
}
