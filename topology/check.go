package topology

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// checker compares a tree with the table of keys and collects every mistake.
type checker struct{ errs Errors }

func (c *checker) fail(n *node, field, value, msg, hint string) {
	if len(c.errs) < maxErrors {
		c.errs = append(c.errs, &Error{n.file, n.line, n.col, field, value, msg, hint})
	}
}

// prune makes a bad value absent, so that later stages meet only values that
// parse and can go on to find other mistakes.
func (n *node) prune() { n.kind, n.keys, n.items, n.pruned = nNull, nil, nil, true }

// maimed says whether a mistake was pruned from a mapping's values.
func (n *node) maimed() bool {
	return slices.ContainsFunc(n.keys, func(e entry) bool { return e.val.pruned })
}

// check walks a value.
func (c *checker) check(n *node, s *spec, field string) {
	if n.kind == nNull && s.kind != kAny {
		if n.pruned || s.kind == kMap || s.kind == kSeq { // "leaf:" with nothing below says nothing
			return
		}
		c.fail(n, field, "", "has no value; must be "+s.describe(), "")
		return
	}
	switch s.kind {
	case kAny:
		return
	case kMap:
		c.checkMap(n, s, field)
	case kSeq:
		c.checkSeq(n, s, field)
	default:
		c.checkScalar(n, s, field)
	}
}

func (c *checker) checkMap(n *node, s *spec, field string) {
	if n.kind == nScalar && slices.Contains(s.words, n.text) {
		return
	}
	if n.kind == nScalar && s.orScalar != nil {
		c.check(n, s.orScalar.with(s.words...), field)
		return
	}
	if n.kind != nMap {
		c.fail(n, field, n.text, "must be a mapping with keys "+strings.Join(s.names(), ", "), nearest(n.text, s.words))
		n.prune()
		return
	}
	for i := range n.keys {
		e := &n.keys[i]
		sub := join(field, e.key)
		if ks := s.find(e.key); ks != nil {
			c.check(e.val, ks, sub)
			continue
		}
		if s.index != nil {
			if k, err := strconv.ParseInt(e.key, 10, 64); err == nil {
				if k < s.lo || k > s.hi {
					c.fail(&node{file: e.val.file, line: e.line, col: e.col}, sub, e.key, fmt.Sprintf("must be %d..%d", s.lo, s.hi), "")
					continue
				}
				c.check(e.val, s.index, sub)
				continue
			}
		}
		if s.other != nil {
			c.check(e.val, s.other, sub)
			continue
		}
		c.unknown(n, e, s, field)
	}
	for _, x := range s.exclude {
		if a, b := n.get(x[0]), n.get(x[1]); a != nil && b != nil {
			c.fail(b, join(field, x[1]), b.text, fmt.Sprintf("give %s or %s, not both (%s at %s)", x[0], x[1], x[0], a.pos()), "")
		}
	}
}

// unknown reports a key that is not known here; one that is known elsewhere is
// probably one level off.
func (c *checker) unknown(n *node, e *entry, s *spec, field string) {
	at := &node{file: e.val.file, line: e.line, col: e.col} // the mapping may be another layer's
	names := s.names()
	if s.narrow != nil {
		if l := s.narrow(n); l != nil {
			names = l
		}
	}
	allowed := strings.Join(names, ", ")
	if s.index != nil {
		allowed = strings.TrimPrefix(allowed+fmt.Sprintf(", or a number %d..%d", s.lo, s.hi), ", or ")
	}
	msg := "unknown key; allowed here: " + allowed
	hint := nearest(e.key, names)
	if places := placesOf()[e.key]; hint == "" && len(places) > 0 {
		hint = places[0]
		for _, p := range places { // prefer a place below or beside this one
			if strings.HasPrefix(p, field+".") {
				hint = p
				break
			}
		}
		msg = "unknown key at this level; allowed here: " + allowed
	}
	c.fail(at, join(field, e.key), e.key, msg, hint)
}

func (c *checker) checkSeq(n *node, s *spec, field string) {
	if n.kind == nScalar && s.orScalar != nil {
		c.check(n, s.orScalar, field)
		return
	}
	if n.kind != nSeq {
		c.fail(n, field, n.text, "must be a list", "")
		n.prune()
		return
	}
	for i, x := range n.items {
		name := fmt.Sprintf("%s[%d]", field, i)
		if id := x.get("name"); id != nil && id.kind == nScalar {
			name = field + "." + clip(id.text)
		}
		if x.kind == nNull {
			c.fail(x, name, "", "is empty; must be "+s.item.describe(), "")
			continue
		}
		c.check(x, s.item, name)
	}
}

func (c *checker) checkScalar(n *node, s *spec, field string) {
	if n.kind != nScalar {
		if n.kind == nSeq && s.orSeq != nil {
			c.check(n, s.orSeq, field)
			return
		}
		c.fail(n, field, "", "must be "+s.describe()+", not a "+kindName(n.kind), "")
		n.prune()
		return
	}
	if s.kind != kWord && slices.Contains(s.words, n.text) {
		return
	}
	if bad := s.parse(n.text); bad != nil {
		msg, hint := bad.msg, bad.hint
		if len(s.words) > 0 && s.kind != kWord {
			if s.kind != kInt { // whose message has them
				msg += ", or " + strings.Join(s.words, ", ")
			}
			if w := nearest(n.text, s.words); w != "" && hint == "" {
				hint = w
			}
		}
		c.fail(n, field, quoteEmpty(n.text), msg, hint)
		n.prune()
	}
}

// choice are the only numbers that a setting takes, in order.
type choice []int64

// String lists them: "256, 512 or 1024".
func (c choice) String() string {
	var b strings.Builder
	for i, n := range c {
		if i > 0 {
			b.WriteString(map[bool]string{true: " or ", false: ", "}[i == len(c)-1])
		}
		b.WriteString(strconv.FormatInt(n, 10))
	}
	return b.String()
}

// below is the largest that is not above what was written, else the smallest.
func (c choice) below(text string) string {
	num, _ := splitUnit(text)
	n, err := strconv.ParseInt(num, 0, 64)
	if err != nil {
		return ""
	}
	best := c[0]
	for _, x := range c {
		if x <= n {
			best = x
		}
	}
	return strconv.FormatInt(best, 10)
}

func quoteEmpty(s string) string {
	if s == "" {
		return " "
	}
	return s
}

func kindName(k nodeKind) string {
	switch k {
	case nMap:
		return "mapping"
	case nSeq:
		return "list"
	}
	return "scalar"
}

// parse checks a scalar's text against its kind.
func (s *spec) parse(text string) *badUnit {
	switch s.kind {
	case kRate:
		n, bad := quantity(text, rateUnits, fitRate)
		if bad == nil && n > 100e12 {
			bad = &badUnit{msg: "must be at most 100Tbps"}
		}
		return bad
	case kLength:
		n, bad := quantity(text, lengthUnits, fitLength)
		if bad == nil && n > 40_000_000_000 {
			bad = &badUnit{msg: "must be at most 40000km"}
		}
		return bad
	case kDuration:
		_, bad := quantity(text, durationUnits, fitDuration)
		return bad
	case kSize:
		n, bad := quantity(text, sizeUnits, fitSize)
		if bad == nil && n > 1<<50 {
			bad = &badUnit{msg: "must be at most 1024TiB"}
		}
		return bad
	case kAlpha:
		if _, err := ParseAlpha(text); err != nil {
			return err.(*badUnit)
		}
	case kProb:
		_, bad := probability(text)
		return bad
	case kInt:
		n, bad := parseInt(text)
		if bad != nil || n < s.lo || n > s.hi || len(s.among) > 0 && !slices.Contains(s.among, n) {
			b := &badUnit{msg: "must be " + s.describe()}
			if bad != nil {
				if h, err := strconv.ParseInt(bad.hint, 10, 64); err == nil && h >= s.lo && h <= s.hi {
					b.hint = bad.hint
				}
			}
			if len(s.among) > 0 {
				b.hint = s.among.below(text)
			}
			return b
		}
	case kBool:
		if text != "true" && text != "false" {
			return &badUnit{msg: "must be true or false"}
		}
	case kWord:
		if !slices.Contains(s.words, text) {
			return &badUnit{msg: "must be " + s.describe(), hint: nearest(text, s.words)}
		}
	case kText:
		if text == "" || len(text) > 4096 {
			return &badUnit{msg: "must be a text of 1..4096 characters"}
		}
	}
	return nil
}

// describe says in words what is allowed.
func (s *spec) describe() string {
	var d string
	switch s.kind {
	case kRate:
		d = fitRate
	case kLength:
		d = fitLength
	case kDuration:
		d = fitDuration
	case kSize:
		d = fitSize
	case kAlpha:
		d = "a factor such as 1/8 or 8"
	case kProb:
		d = "a probability from 0 to 1"
	case kInt:
		d = fmt.Sprintf("a whole number %d..%d", s.lo, s.hi)
		if s.lo == s.hi {
			d = fmt.Sprint(s.lo)
		}
		if len(s.among) > 0 {
			d = s.among.String() + ", a bare number"
		}
	case kBool:
		d = "true or false"
	case kWord:
		return "one of " + strings.Join(s.words, ", ")
	case kMap:
		d = "a mapping"
	case kSeq:
		d = "a list"
	default:
		d = "a text"
	}
	for _, w := range s.words {
		d += ", or " + w
	}
	return d
}
