package report

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"
)

// Parts travel in bytes that say no names: whole numbers as varints, lists and
// maps with their length before them, maps by key, so that equal parts have
// equal bytes. What comes first stands for the names and kinds of all fields: a
// program that has others does not read them.

// EncodeParts writes parts canonically.
func EncodeParts(parts []*Part) ([]byte, error) {
	shape := formOf(partType)
	b := binary.BigEndian.AppendUint64(nil, shape.sum)
	b = binary.AppendUvarint(b, uint64(len(parts)))
	for _, p := range parts {
		b = shape.put(b, reflect.ValueOf(p).Elem())
	}
	return b, nil
}

// DecodeParts reads what EncodeParts wrote.
func DecodeParts(b []byte) ([]*Part, error) {
	shape := formOf(partType)
	if len(b) < 8 || binary.BigEndian.Uint64(b) != shape.sum {
		return nil, errors.New("these are no parts of a result, or those of another build")
	}
	r := partReader{b: b[8:]}
	parts := make([]*Part, r.count(shape.least))
	for i := range parts {
		parts[i] = new(Part)
		shape.get(&r, reflect.ValueOf(parts[i]).Elem())
	}
	switch {
	case r.bad:
		return nil, errors.New("malformed parts of a result")
	case len(r.b) > 0:
		return nil, fmt.Errorf("%d bytes after the last part of a result", len(r.b))
	}
	return parts, nil
}

var partType = reflect.TypeFor[Part]()

// form is how values of a type are written.
type form struct {
	t     reflect.Type
	elem  *form   // of a list, a map or a pointer
	parts []*form // of a struct, by field
	least int     // bytes that a value takes
	sum   uint64  // of all names and kinds
}

// formOf takes a tenth of a millisecond of a Part.
func formOf(t reflect.Type) *form {
	f := &form{t: t, least: 1}
	h := fnv.New64a()
	fmt.Fprint(h, t.Kind())
	switch t.Kind() {
	case reflect.Struct:
		f.least = 0
		for i := range t.NumField() {
			x := formOf(t.Field(i).Type)
			f.parts, f.least = append(f.parts, x), f.least+x.least
			fmt.Fprint(h, " ", t.Field(i).Name, " ", x.sum)
		}
	case reflect.Array, reflect.Slice, reflect.Pointer, reflect.Map:
		f.elem = formOf(t.Elem())
		fmt.Fprint(h, " ", f.elem.sum)
		if t.Kind() == reflect.Array {
			f.least = t.Len() * f.elem.least
			fmt.Fprint(h, " ", t.Len())
		}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint64, reflect.String:
	default:
		panic("report: a part holds a " + t.String())
	}
	f.sum = h.Sum64()
	return f
}

// put appends v. Lists and maps that are not there are told from empty ones.
func (f *form) put(b []byte, v reflect.Value) []byte {
	switch f.t.Kind() {
	case reflect.Struct:
		for i, x := range f.parts {
			b = x.put(b, v.Field(i))
		}
	case reflect.Slice, reflect.Map, reflect.Pointer:
		if v.IsNil() {
			return append(b, 0)
		}
		return f.putThere(b, v)
	case reflect.Array:
		return f.putItems(b, v)
	case reflect.String:
		b = putString(b, v.String())
	case reflect.Uint8, reflect.Uint64:
		b = binary.AppendUvarint(b, v.Uint())
	default:
		b = binary.AppendVarint(b, v.Int())
	}
	return b
}

// putThere is put of a list, a map or a pointer that is there.
func (f *form) putThere(b []byte, v reflect.Value) []byte {
	if f.t.Kind() == reflect.Pointer {
		return f.elem.put(append(b, 1), v.Elem())
	}
	b = binary.AppendUvarint(b, uint64(v.Len())+1)
	if f.t.Kind() == reflect.Slice {
		return f.putItems(b, v)
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
	for _, k := range keys {
		b = f.elem.put(putString(b, k.String()), v.MapIndex(k))
	}
	return b
}

func (f *form) putItems(b []byte, v reflect.Value) []byte {
	for i := range v.Len() {
		b = f.elem.put(b, v.Index(i))
	}
	return b
}

func putString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// get reads into v what put wrote.
func (f *form) get(r *partReader, v reflect.Value) {
	switch f.t.Kind() {
	case reflect.Struct:
		for i, x := range f.parts {
			x.get(r, v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			f.elem.get(r, v.Index(i))
		}
	case reflect.Slice:
		if n, some := r.some(f.elem.least); some {
			v.Set(reflect.MakeSlice(f.t, n, n))
			for i := range n {
				f.elem.get(r, v.Index(i))
			}
		}
	case reflect.Map:
		f.getMap(r, v)
	case reflect.Pointer:
		switch r.uint() {
		case 0:
		case 1:
			v.Set(reflect.New(f.t.Elem()))
			f.elem.get(r, v.Elem())
		default:
			r.took(0)
		}
	case reflect.String:
		v.SetString(r.string())
	case reflect.Uint8, reflect.Uint64:
		n := r.uint()
		r.bad = r.bad || v.OverflowUint(n)
		v.SetUint(n)
	default:
		n := r.int()
		r.bad = r.bad || v.OverflowInt(n)
		v.SetInt(n)
	}
}

func (f *form) getMap(r *partReader, v reflect.Value) {
	n, some := r.some(1 + f.elem.least)
	if !some {
		return
	}
	v.Set(reflect.MakeMapWithSize(f.t, n))
	for range n {
		key, x := reflect.ValueOf(r.string()), reflect.New(f.t.Elem()).Elem()
		f.elem.get(r, x)
		v.SetMapIndex(key, x)
	}
}

// partReader reads numbers from the front of b; at the first mistake it is bad,
// and all that follows is zero.
type partReader struct {
	b   []byte
	bad bool
}

func (r *partReader) took(n int) {
	if n <= 0 {
		r.bad, r.b, n = true, nil, 0
	}
	r.b = r.b[n:]
}

func (r *partReader) uint() uint64 {
	x, n := binary.Uvarint(r.b)
	r.took(n)
	return x
}

func (r *partReader) int() int64 {
	x, n := binary.Varint(r.b)
	r.took(n)
	return x
}

// count reads how many items of a least size follow: never more than could.
func (r *partReader) count(least int) int {
	n := r.uint()
	if n > uint64(len(r.b)/max(1, least)) {
		r.took(0)
		return 0
	}
	return int(n)
}

// some reads the length of a list or a map, and whether it is there.
func (r *partReader) some(least int) (n int, some bool) {
	x := r.uint()
	if x == 0 || r.bad {
		return 0, false
	}
	if x-1 > uint64(len(r.b)/max(1, least)) {
		r.took(0)
		return 0, false
	}
	return int(x - 1), true
}

func (r *partReader) string() string {
	n := r.count(1)
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}
