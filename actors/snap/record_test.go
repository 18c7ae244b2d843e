package snap

import (
	"reflect"
	"testing"

	"github.com/rocemu/rocemu/nodes/record"
)

// TestRecordKeepsEveryField: a field that a record gets later must be written
// and read, too.
func TestRecordKeepsEveryField(t *testing.T) {
	var in, out record.Record
	v := reflect.ValueOf(&in).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case !f.CanSet(): // padding
		case f.CanInt():
			f.SetInt(int64(-100 - i))
		default:
			f.SetUint(uint64(100 + i))
		}
	}
	var w Writer
	w.Record(&in)
	r := Reader{B: w.B}
	r.Record(&out)
	if r.Err != nil || len(r.B) != 0 || out != in {
		t.Errorf("%v, %d bytes left\ngot  %+v\nwant %+v", r.Err, len(r.B), out, in)
	}
	r = Reader{B: w.B[:len(w.B)-1]}
	if r.Record(&out); r.Err == nil {
		t.Error("a cut record is accepted")
	}
}
