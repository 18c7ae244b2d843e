package report

import (
	"fmt"
	"math"
	"reflect"
	"sort"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// shape lets CEL check expressions against the result object: each struct of
// [Result] is an object type whose fields are the JSON names. Values are read
// from the generic view that [view] makes.
type shape struct {
	types.Provider
	fields map[string]map[string]*cel.Type // object type → field → type
}

var (
	nsType   = reflect.TypeFor[NS]()
	rnicType = reflect.TypeFor[RNICCounters]()
)

// newShape registers the struct t and all that it holds.
func newShape(base types.Provider, t reflect.Type) *shape {
	s := &shape{Provider: base, fields: map[string]map[string]*cel.Type{}}
	s.typeOf(t)
	return s
}

// objectName is a struct's name among CEL types.
func objectName(t reflect.Type) string { return "rocemu." + t.Name() }

// typeOf returns the CEL type of a Go type, registering structs on the way.
func (s *shape) typeOf(t reflect.Type) *cel.Type {
	switch {
	case t == nsType, t.Kind() == reflect.Float64:
		return cel.DoubleType
	case t.Kind() == reflect.Pointer:
		return s.typeOf(t.Elem())
	case t.Kind() == reflect.Map:
		return cel.MapType(cel.StringType, s.typeOf(t.Elem()))
	case t.Kind() == reflect.Slice:
		return cel.ListType(s.typeOf(t.Elem()))
	case t.Kind() == reflect.String:
		return cel.StringType
	case t.Kind() == reflect.Bool:
		return cel.BoolType
	case t.Kind() == reflect.Struct:
		return s.object(t)
	}
	return cel.IntType
}

func (s *shape) object(t reflect.Type) *cel.Type {
	name := objectName(t)
	if s.fields[name] == nil {
		f := map[string]*cel.Type{}
		s.fields[name] = f
		for i := range t.NumField() {
			if key := jsonKey(t.Field(i)); key != "" {
				f[key] = s.typeOf(t.Field(i).Type)
			}
		}
		if t == rnicType {
			for key := range prioFields(&RNICCounters{}) {
				f[key] = cel.IntType
				if strings.HasSuffix(key, "_ns") {
					f[key] = cel.DoubleType
				}
			}
		}
	}
	return cel.ObjectType(name)
}

// jsonKey returns a field's JSON name, "" when it has none.
func jsonKey(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if key == "-" || !f.IsExported() {
		return ""
	}
	return key
}

// FindStructType knows the result's object types.
func (s *shape) FindStructType(name string) (*types.Type, bool) {
	if _, ok := s.fields[name]; ok {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return s.Provider.FindStructType(name)
}

// FindStructFieldNames lists an object type's fields, sorted.
func (s *shape) FindStructFieldNames(name string) ([]string, bool) {
	f, ok := s.fields[name]
	if !ok {
		return s.Provider.FindStructFieldNames(name)
	}
	var out []string
	for k := range f {
		out = append(out, k)
	}
	sort.Strings(out)
	return out, true
}

// FindStructFieldType returns how to read a field.
func (s *shape) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	f, ok := s.fields[name]
	if !ok {
		return s.Provider.FindStructFieldType(name, field)
	}
	t, ok := f[field]
	if !ok {
		return nil, false
	}
	return &types.FieldType{
		Type: t,
		IsSet: func(target any) bool {
			m, ok := target.(map[string]any)
			_, has := m[field]
			return ok && has
		},
		GetFrom: func(target any) (any, error) {
			m, _ := target.(map[string]any)
			v, has := m[field]
			if !has {
				return nil, fmt.Errorf("%s has no value (nothing to measure)", field)
			}
			return v, nil
		},
	}, true
}

// NewValue refuses: expressions read results, they do not build them.
func (s *shape) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if _, ok := s.fields[name]; ok {
		return types.NewErr("a result's %s cannot be built in an expression", name)
	}
	return s.Provider.NewValue(name, fields)
}

// prioFields returns the per-priority counters of an RNIC by name.
func prioFields(c *RNICCounters) map[string]any {
	out := map[string]any{}
	for p := range 8 {
		out[fmt.Sprintf(rxPauseKey, p)] = int64(c.RxPause[p])
		out[fmt.Sprintf(txPauseKey, p)] = int64(c.TxPause[p])
		out[fmt.Sprintf(rxSpanKey, p)] = c.RxPauseNS[p].Float()
	}
	return out
}

// view turns a result into maps, lists, int64, float64 and strings under their
// JSON names. Absent distributions stay absent; per-class maps hold all eight
// classes, so that a class without traffic reads as zero; statuses hold all.
func view(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return view(v.Elem())
	case reflect.Struct:
		return viewStruct(v)
	case reflect.Map:
		return viewMap(v)
	case reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = view(v.Index(i))
		}
		return out
	case reflect.Uint64:
		if u := v.Uint(); u > math.MaxInt64 {
			return u
		}
		return int64(v.Uint())
	case reflect.Uint32, reflect.Uint16, reflect.Uint8, reflect.Uint:
		return int64(v.Uint())
	case reflect.Int64, reflect.Int, reflect.Int32:
		if v.Type() == nsType {
			return NS(v.Int()).Float()
		}
		return v.Int()
	}
	return v.Interface()
}

func viewStruct(v reflect.Value) map[string]any { return viewOf(v, nil) }

// viewOf views those fields that are asked for; nil = all.
func viewOf(v reflect.Value, asked map[string]bool) map[string]any {
	out := map[string]any{}
	t := v.Type()
	for i := range t.NumField() {
		key := jsonKey(t.Field(i))
		if key == "" || asked != nil && !asked[key] || v.Field(i).Kind() == reflect.Pointer && v.Field(i).IsNil() {
			continue
		}
		out[key] = view(v.Field(i))
		if key == "statuses" {
			for _, n := range statusNames {
				if m := out[key].(map[string]any); m[n] == nil {
					m[n] = int64(0)
				}
			}
		}
	}
	if t == rnicType {
		c := v.Interface().(RNICCounters)
		for k, x := range prioFields(&c) {
			out[k] = x
		}
	}
	return out
}

func viewMap(v reflect.Value) map[string]any {
	out := make(map[string]any, v.Len())
	for it := v.MapRange(); it.Next(); {
		out[it.Key().String()] = view(it.Value())
	}
	switch elem := v.Type().Elem(); elem {
	case reflect.TypeFor[*PFCCounters](), reflect.TypeFor[*PGCounters](), reflect.TypeFor[*QueueCounter](), reflect.TypeFor[*WatchCounter]():
		for p := range 8 {
			if k := fmt.Sprint(p); out[k] == nil {
				out[k] = viewStruct(reflect.Zero(elem.Elem()))
			}
		}
	}
	return out
}

// topFields are the result's top-level names; allFields every field's name.
func topFields() []string {
	t := reflect.TypeFor[Result]()
	var out []string
	for i := range t.NumField() {
		if key := jsonKey(t.Field(i)); key != "" {
			out = append(out, key)
		}
	}
	return out
}

func allFields() []string {
	s := newShape(nil, reflect.TypeFor[Result]())
	seen := map[string]bool{}
	var out []string
	for _, f := range s.fields {
		for k := range f {
			if !seen[k] {
				seen[k] = true
				out = append(out, k)
			}
		}
	}
	sort.Strings(out)
	return out
}
