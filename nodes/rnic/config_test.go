package rnic

import (
	"reflect"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/topology"
)

// odd fills every field of a struct with a value that no default has and that
// the transport accepts.
func odd(v reflect.Value) {
	for i := range v.NumField() {
		f := v.Field(i)
		switch f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.String:
			f.SetString(words[v.Type().Field(i).Name])
		case reflect.Int, reflect.Int64, reflect.Int32:
			f.SetInt(5)
		case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			f.SetUint(5)
		case reflect.Array:
			for k := range f.Len() {
				if e := f.Index(k); e.Kind() == reflect.Array {
					e.Index(0).SetUint(uint64(2 * k))
					e.Index(1).SetUint(uint64(2*k + 1))
				}
			}
		case reflect.Struct:
			odd(f)
		}
	}
}

var words = map[string]string{
	"Recovery": "selective-repeat", "RNREarly": "drop", "TimeoutRule": "qedr", "Model": "odd", "Name": "odd",
	"CNPScope": "port", "Congestion": "dcqcn",
}

func oddNIC() *topology.NIC {
	n := new(topology.NIC)
	odd(reflect.ValueOf(n).Elem())
	n.Latency, n.QP.TimeoutMode = 7, topology.TimeoutLinux
	n.Pers.ADPProfile.NRanges = 4
	n.QP.AltTimeout = 6
	return n
}

// TestEveryConfigFieldIsSet fails when a setting of the transport machines is
// not reached by any field of the plan.
func TestEveryConfigFieldIsSet(t *testing.T) {
	n := oddNIC()
	c := newConfig(9, n, &n.QP, &n.QP, 4096)
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("qp.Config.%s is never set", v.Type().Field(i).Name)
		}
	}
	a := reflect.ValueOf(c.ADP).Elem()
	for i := range a.NumField() {
		if a.Field(i).IsZero() {
			t.Errorf("qp.ADP.%s is never set", a.Type().Field(i).Name)
		}
	}
}

// used lists the plan's fields that something else than the configuration
// reads, and what.
var used = map[string]string{
	"InitialPSN": "pair.use", "AltPort": "pair.use", "ConnectCM": "negotiation", "PacketLife": "below", "AckDelay": "below",
	"TimeoutMode": "below", "CNPScope": "newNP", "CNPFloor": "newNP", "TimeoutMax": "checked at load", "Name": "a name",
}

// TestEveryPlanFieldActs fails when a QP attribute or a personality's field
// changes nothing.
func TestEveryPlanFieldActs(t *testing.T) {
	base := func() *topology.NIC {
		n := oddNIC()
		n.QP.TimeoutMode, n.QP.ConnectCM = topology.TimeoutIBTA, false
		return n
	}
	conf := func(n *topology.NIC) *qp.Config { return newConfig(9, n, &n.QP, &n.QP, 4096) }
	try := func(group string, pick func(*topology.NIC) reflect.Value) {
		typ := pick(base()).Type()
		for i := range typ.NumField() {
			name := typ.Field(i).Name
			if used[name] != "" {
				continue
			}
			n := base()
			if name == "TimeoutFloor" {
				n.QP.Timeout, n.QP.AltTimeout = 1, 1
			}
			ref := conf(n)
			f := pick(n).Field(i)
			switch f.Kind() {
			case reflect.Bool:
				f.SetBool(!f.Bool())
			case reflect.String:
				f.SetString("")
			case reflect.Uint8, reflect.Uint16, reflect.Uint32:
				f.SetUint(f.Uint() + 1)
			case reflect.Array:
				f.Index(0).Index(0).SetUint(1)
			case reflect.Struct:
				f.SetZero()
			default:
				f.SetInt(f.Int() + int64(clock.Second))
			}
			if name == "Timeout" || name == "AltTimeout" { // below 9 the qedr rule gives 1 ms for all
				f.SetUint(12)
			}
			if reflect.DeepEqual(ref, conf(n)) {
				t.Errorf("%s.%s changes nothing", group, name)
			}
		}
	}
	try("QPParams", func(n *topology.NIC) reflect.Value { return reflect.ValueOf(&n.QP).Elem() })
	try("Personality", func(n *topology.NIC) reflect.Value { return reflect.ValueOf(&n.Pers).Elem() })
	try("ADPProfile", func(n *topology.NIC) reflect.Value { return reflect.ValueOf(&n.Pers.ADPProfile).Elem() })
}

// TestConnectForms holds the three readings of a path lifetime and an ACK
// delay (transport §3.2, §4 row 5): the own lifetime and the peer's delay.
func TestConnectForms(t *testing.T) {
	us := clock.Microsecond
	for _, c := range []struct {
		mode topology.TimeoutMode
		want clock.Duration
		exp  uint8
	}{
		{topology.TimeoutIBTA, qp.AckTimeout(20), 20},
		{topology.TimeoutLinux, qp.AckTimeout(19), 19},
		{topology.TimeoutExact, 4096 * clock.Nanosecond * (2<<18 + 1<<15), 0},
		{topology.TimeoutArticle, 208896 * us / 1000, 0},
	} {
		n := new(topology.NIC)
		own := &topology.QPParams{ConnectCM: true, PacketLife: 18, AckDelay: 1, Timeout: 14, TimeoutMode: c.mode, MaxRdAtomic: 16, MaxDestRd: 16}
		peer := &topology.QPParams{ConnectCM: true, PacketLife: 3, AckDelay: 15, MaxRdAtomic: 16, MaxDestRd: 4}
		got := timersOf(n, own, peer)
		if got.Effective != c.want || got.Negotiated != c.want || got.Exponent != c.exp || got.Proposed != qp.AckTimeout(14) {
			t.Errorf("%s: %+v, want %v", modeNames[c.mode], got, c.want)
		}
		if m := newConfig(1, n, own, peer, 1024).MaxRdAtomic; m != 4 {
			t.Errorf("max_rd_atomic %d, want the responder's 4", m)
		}
	}
	own := &topology.QPParams{ConnectCM: true, PacketLife: 2, TimeoutMode: topology.TimeoutLinux, TimeoutFloor: 268 * clock.Millisecond, MaxRdAtomic: 1, MaxDestRd: 1}
	if got := timersOf(new(topology.NIC), own, own); !got.Clamped || got.Effective != 268*clock.Millisecond || got.Negotiated >= got.Effective {
		t.Errorf("floor: %+v", got)
	}
}
