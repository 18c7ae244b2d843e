package topology

import (
	"reflect"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/clock"
)

var faultTexts = []string{
	"link-down leaf1:uplink1 name=cut at=1ms for=500us",
	"link-down leaf1:5 hold=10us",
	"link-flap leaf1:uplink2 at=0s for=1ms duty=0.5 period=100us",
	"one-way rnic1:1 at=1us dir=out",
	"device-down spine1 at=2ms for=1ms",
	"rate leaf1:1 to=10Gbps",
	"ber leaf1:uplink1 dir=out to=1e-9",
	"loss leaf1:uplink1 kind=ack probability=1e-15",
	"loss leaf1:uplink1 every=256",
	"mtu leaf1:2 size=1500B",
	"hash leaf1 to=crc32",
	"route leaf1 to=rnic5 via=leaf1:5,leaf1:6",
	"blackhole spine1 dst=rnic5",
	"drop rnic1:1 at=0s dir=out psn_index=3 count=1",
	"drop leaf1:2 opcode=write-first qp=17 psn=4096 iteration=any",
	"drop leaf1:2 ack=1 iteration=2",
	"corrupt leaf1:1 dir=in count=2 field=ip.ttl",
	"delay leaf1:1 flow=bulk by=5us",
	"inject leaf1:1 opcode=acknowledge psn=7 qp=17 syndrome=96",
	"inject rnic1:1 at=1us count=3 interval=1us opcode=pause quanta=100",
	"inject leaf1:1 dir=in opcode=pfc priorities=none",
	"pause-storm rnic1:1 at=0s for=1s priorities=3,4",
	"slow-receiver rnic2 drain=20Gbps",
	"buffer leaf1 size=262144B",
	"rq-pause rnic2 for=2ms qps=17,18",
	"qp-error rnic2 at=200us qps=all",
	"drop bulk kind=data count=1",
}

// TestFaultText demands that every form reads, prints the same and binds.
func TestFaultText(t *testing.T) {
	p := load(t, twoRacks)
	for _, s := range faultTexts {
		f, err := ParseFault(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		if got := f.String(); got != s {
			t.Errorf("%s prints as %s", s, got)
		}
		g, err := ParseFault(f.String())
		if err != nil || !reflect.DeepEqual(f, g) {
			t.Errorf("%s does not round-trip: %v", s, err)
		}
		if err := p.BindFault(f); err != nil {
			t.Errorf("%s does not bind: %v", s, err)
		}
		if f.Dev < 0 {
			t.Errorf("%s: no device", s)
		}
	}
}

func TestFaultErrors(t *testing.T) {
	for s, want := range map[string]string{
		"":                                 "must be KIND TARGET",
		"drop":                             "target: missing",
		"dropp rnic1":                      `did you mean "drop"?`,
		"drop rnic1:1 at=5":                "a bare number has no unit",
		"drop rnic1:1 psnindex=3":          `did you mean "psn_index"?`,
		"drop rnic1:1 dir=sideways":        "must be one of in, out",
		"drop rnic1:1 opcode=write-frist":  `did you mean "write-first"?`,
		"rate leaf1:1":                     "missing for rate: give to",
		"loss leaf1:1":                     "give probability or every",
		"corrupt leaf1:1 field=ip.dst":     "must be one of ethertype",
		"link-down leaf1:1 for=1ms psn=3":  "link-down takes",
		"drop rnic1:1 count=0":             "must be a whole number 1..",
		"drop rnic1:1 count=1 count=2":     "given twice",
		"drop rnic1:1 dir=out rnic2":       "must be key=value",
		"link-down leaf1:1 for=1s count=1": "give for or count",
	} {
		if _, err := ParseFault(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", s, err, want)
		}
	}
	p := load(t, twoRacks)
	for s, want := range map[string]string{
		"link-down leaf1 at=1ms":           "must be device:port",
		"slow-receiver leaf1 drain=1G":     "needs an RNIC",
		"hash rnic1 to=crc32":              "needs a switch",
		"hash leaf1 to=md5":                "must be murmur3, crc32, or a seed",
		"drop leaf9:1":                     `did you mean "leaf1:1"?`,
		"drop rnic1 flow=bulc":             `did you mean "bulk"?`,
		"drop perm":                        "has several senders",
		"route leaf1 to=rnic5 via=leaf2:5": "must be a port of leaf1",
		"blackhole leaf1 dst=spine1":       "must be an RNIC",
	} {
		f, err := ParseFault(s)
		if err != nil {
			t.Errorf("%q: %v", s, err)
			continue
		}
		if err := p.BindFault(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", s, err, want)
		}
	}
}

// TestFaultsOfFile checks both forms, automatic names and resolved places.
func TestFaultsOfFile(t *testing.T) {
	p := load(t, twoRacks)
	if len(p.Faults) != 3 {
		t.Fatalf("%d faults", len(p.Faults))
	}
	cut, lose, third := p.Faults[0], p.Faults[1], p.Faults[2]
	if cut.At != clock.Time(clock.Millisecond) || cut.For != 500*clock.Microsecond || p.PortName(cut.Dev, cut.Port) != "leaf1:5" || p.PortName(cut.Peer, cut.PPort) != "spine1:1" {
		t.Errorf("cut: %+v", cut)
	}
	if lose.Match.PSNIndex != 3 || lose.Match.Iteration != 1 || lose.Match.Dir != "out" || lose.Count != 1 {
		t.Errorf("lose: %+v", lose)
	}
	if third.Name != "drop-2" || third.Pos == "" {
		t.Errorf("third: %+v", third)
	}
}

// FuzzFault: no text crashes, and what reads prints to a fixed point.
func FuzzFault(f *testing.F) {
	for _, s := range faultTexts {
		f.Add(s)
	}
	p, _, err := ParseBytes("f", []byte(twoRacks))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseFault(s)
		if err != nil {
			return
		}
		b, err := ParseFault(a.String())
		if err != nil {
			t.Fatalf("%q prints as %q, which does not read: %v", s, a, err)
		}
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("%q does not round-trip: %+v, %+v", s, a, b)
		}
		_ = p.BindFault(a)
	})
}
