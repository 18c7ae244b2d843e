package gnmi

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// origin says which numbers of a view a field is made of.
type origin uint8

const (
	fromPoints   origin = iota // the device's points, by position
	fromPeriodic               // watermarks, by position in layout.marks
	fromUser
)

// field is where a value of COUNTERS_DB comes from: the sum of some numbers.
type field struct {
	from origin
	at   []int
	div  int64 // the sum divided by this
}

// sum is the field of the points at some places; a place that a device does not
// have counts 0.
func (l *layout) sum(places ...place) field {
	f := field{div: 1}
	for _, p := range places {
		if i, ok := l.at[p]; ok {
			f.at = append(f.at, i)
		}
	}
	return f
}

// number is a field's value.
func (v *View) number(f *field) (sum int64) {
	for _, i := range f.at {
		switch f.from {
		case fromPeriodic:
			sum += v.periodic[i]
		case fromUser:
			sum += v.user[i]
		default:
			sum += v.points[i].Value
		}
	}
	return sum / f.div
}

// template is the JSON of a path with its values left out. Keys and structure
// are the same in all samples of a run, so that they are worked out once.
type template struct {
	text  []byte
	parts []part
	plain bool // a single field, without an object around it
}

// part is a value: it goes before text[end:].
type part struct {
	field
	end int
}

// template finds the template of a path, false when there is no such path.
func (l *layout) template(elems []string) (*template, bool) {
	key := strings.Join(elems, "\x00")
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.templates[key]; t != nil {
		return t, true
	}
	tree, ok := l.sonic(elems)
	if !ok {
		return nil, false
	}
	t := new(template)
	_, t.plain = tree.(field)
	t.add(tree)
	if l.templates == nil {
		l.templates = map[string]*template{}
	}
	l.templates[key] = t
	return t, true
}

// add appends a tree as [json.Marshal] writes maps: keys in order.
func (t *template) add(tree any) {
	if f, ok := tree.(field); ok {
		t.text = append(t.text, '"')
		t.parts = append(t.parts, part{f, len(t.text)})
		t.text = append(t.text, '"')
		return
	}
	next := byte('{')
	o := tree.(map[string]any)
	for _, k := range slices.Sorted(maps.Keys(o)) {
		name, _ := json.Marshal(k)
		t.text = append(append(append(t.text, next), name...), ':')
		t.add(o[k])
		next = ','
	}
	if len(o) == 0 {
		t.text = append(t.text, '{')
	}
	t.text = append(t.text, '}')
}

// json fills in a template. Who asks for the same gets the same bytes.
func (v *View) json(t *template) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	if b := v.answers[t]; b != nil {
		return b
	}
	const digits = 8 // of a value, about
	b, from := make([]byte, 0, len(t.text)+digits*len(t.parts)), 0
	for i := range t.parts {
		p := &t.parts[i]
		b = append(b, t.text[from:p.end]...)
		b = strconv.AppendInt(b, v.number(&p.field), 10)
		from = p.end
	}
	b = append(b, t.text[from:]...)
	if v.answers == nil {
		v.answers = map[*template][]byte{}
	}
	v.answers[t] = b
	return b
}
