package main

import (
	"fmt"
	"reflect"

	"github.com/spf13/pflag"
)

// bind declares a flag for every field of the struct that opts points to. The
// field's value at the call is the default. Tags: flag:"name" or
// flag:"name,shorthand", help:"text".
//
//	type runFlags struct {
//		Set  []string `flag:"set" help:"override one value: path=value"`
//		Seed *uint64  `flag:"seed" help:"…"` // pointer: nil until given
//	}
//
// An embedded struct contributes its fields.
func bind(fs *pflag.FlagSet, opts any) { bindFields(fs, reflect.ValueOf(opts).Elem()) }

func bindFields(fs *pflag.FlagSet, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			bindFields(fs, v.Field(i))
			continue
		}
		name, short := cut(f.Tag.Get("flag"))
		help := f.Tag.Get("help")
		switch p := v.Field(i).Addr().Interface().(type) {
		case *string:
			fs.StringVarP(p, name, short, *p, help)
		case *bool:
			fs.BoolVarP(p, name, short, *p, help)
		case *int:
			fs.IntVarP(p, name, short, *p, help)
		case *[]string:
			fs.StringArrayVarP(p, name, short, *p, help)
		case **uint64:
			fs.VarP(&optionalUint{p}, name, short, help)
		default:
			panic(fmt.Sprintf("emuctl: flag --%s has a type that bind does not know: %T", name, p))
		}
	}
}

func cut(tag string) (name, short string) {
	for i := range tag {
		if tag[i] == ',' {
			return tag[:i], tag[i+1:]
		}
	}
	return tag, ""
}

// optionalUint is a flag that stays nil until it is given.
type optionalUint struct{ p **uint64 }

func (o *optionalUint) String() string {
	if o.p == nil || *o.p == nil {
		return ""
	}
	return fmt.Sprint(**o.p)
}

func (o *optionalUint) Type() string { return "uint" }

func (o *optionalUint) Set(s string) error {
	var n uint64
	if _, err := fmt.Sscanf(s, "%d", &n); err != nil || fmt.Sprint(n) != s {
		return fmt.Errorf("%q is not a whole number from 0 to 18446744073709551615", s)
	}
	*o.p = &n
	return nil
}
