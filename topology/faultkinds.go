package topology

import (
	"slices"
	"sort"
)

// The kinds of faults and what each takes (interface.md, "Faults").

// paramSpec is one parameter of a fault kind.
type paramSpec struct {
	name string
	spec *spec
	list bool // comma-separated in text form
}

type faultTarget uint8

const (
	onCable   faultTarget = iota // device:port, either end
	onPort                       // device:port; an RNIC alone means its port 1
	onDevice                     // any device
	onSwitch                     // a switch, or a port of it
	onNIC                        // an RNIC
	onSetting                    // the path of a setting
)

type faultKind struct {
	name   string
	on     faultTarget
	match  bool // takes frame matching
	params []paramSpec
	need   []string // parameters of which one must be given
}

var (
	pDuration = sDuration
	pPort     = sText
	corrupted = []string{"ethertype", "ip.id", "ip.ttl", "ip.tos", "ip.checksum", "udp.checksum", "bth.resv", "bth.psn", "pad", "icrc", "fcs"}
	dirSpec   = wordOf("in", "out")
)

var faultKinds = []faultKind{
	{"link-down", onCable, false, []paramSpec{{"hold", pDuration, false}, {"detect", pDuration, false}, {"withdraw", pDuration, false}}, nil},
	{"link-flap", onCable, false, []paramSpec{{"hold", pDuration, false}, {"period", pDuration, false}, {"duty", sProb, false}}, []string{"period"}},
	{"one-way", onCable, false, []paramSpec{{"hold", pDuration, false}, {"dir", dirSpec, false}}, nil},
	{"device-down", onDevice, false, []paramSpec{{"hold", pDuration, false}, {"boot", pDuration, false}, {"withdraw", pDuration, false}}, nil},
	{"drain", onDevice, false, []paramSpec{{"hold", pDuration, false}}, nil},
	{"rate", onCable, false, []paramSpec{{"to", sRate, false}}, []string{"to"}},
	{"ber", onCable, false, []paramSpec{{"to", sProb, false}, {"dir", dirSpec, false}}, []string{"to"}},
	{"loss", onCable, true, []paramSpec{{"probability", sProb, false}, {"every", intOf(1, 1<<40), false}}, []string{"probability", "every"}},
	{"mtu", onPort, false, []paramSpec{{"size", sSize, false}}, []string{"size"}},
	{"hash", onSwitch, false, []paramSpec{{"to", sText, false}}, []string{"to"}},
	{"route", onSwitch, false, []paramSpec{{"to", sText, false}, {"via", pPort, true}}, []string{"to"}},
	{"blackhole", onSwitch, false, []paramSpec{{"dst", sText, false}, {"bucket", intOf(0, 1<<32-1), false}}, []string{"dst", "bucket"}},
	{"drop", onPort, true, chanceParams, nil},
	{"corrupt", onPort, true, append([]paramSpec{{"field", wordOf(corrupted...), false}}, chanceParams...), []string{"field"}},
	{"duplicate", onPort, true, chanceParams, nil},
	{"delay", onPort, true, append([]paramSpec{{"by", pDuration, false}}, chanceParams...), []string{"by"}},
	{"reorder", onPort, true, chanceParams, nil},
	{"mark-ce", onPort, true, chanceParams, nil},
	{"inject", onPort, false, []paramSpec{
		{"opcode", sText, false},
		{"psn", intOf(0, 1<<24-1), false},
		{"qp", intOf(0, 1<<24-1), false},
		{"src", sText, false},
		{"dst", sText, false},
		{"size", sSize, false},
		{"dscp", intOf(0, 63), false},
		{"ecn", intOf(0, 3), false},
		{"syndrome", intOf(0, 255), false},
		{"msn", intOf(0, 1<<24-1), false},
		{"ackreq", sBool, false},
		{"ttl", intOf(1, 255), false},
		{"priorities", intOf(0, 7).with("none"), true},
		{"quanta", intOf(0, 65535), false},
		{"interval", pDuration, false},
		{"dir", dirSpec, false},
	}, []string{"opcode"}},
	{"pause-storm", onPort, false, []paramSpec{{"priorities", intOf(0, 7), true}}, nil},
	{"slow-receiver", onNIC, false, []paramSpec{{"drain", sRate, false}}, []string{"drain"}},
	{"pfc-off", onPort, false, []paramSpec{{"priorities", intOf(0, 7), true}}, nil},
	{"ecn-off", onPort, false, []paramSpec{{"priorities", intOf(0, 7), true}}, nil},
	{"buffer", onSwitch, false, []paramSpec{{"size", sSize, false}}, []string{"size"}},
	{"dscp", onDevice, true, []paramSpec{{"to", intOf(0, 63), false}}, []string{"to"}},
	{"rq-empty", onNIC, false, rqParams, nil},
	{"rq-pause", onNIC, false, rqParams, nil},
	{"mr-not-ready", onNIC, false, rqParams, nil},
	{"no-resource", onNIC, false, rqParams, nil},
	{"rx-overflow", onNIC, false, rqParams, nil},
	{"pcie-stall", onNIC, false, rqParams, nil},
	{"early-rnr", onNIC, false, rqParams, nil},
	{"qp-error", onNIC, false, rqParams, nil},
	{SetKind, onSetting, false, []paramSpec{{"to", sText, false}}, []string{"to"}},
}

// pauseOps are the words of inject for MAC control frames: a PFC frame and the
// 802.3x PAUSE of the whole link.
var pauseOps = []string{"pfc", "pause"}

// chanceParams thin out the frames that match.
var chanceParams = []paramSpec{{"probability", sProb, false}, {"every", intOf(1, 1<<40), false}}

var rqParams = []paramSpec{{"qps", intOf(1, 1<<24-1).with("all"), true}, {"wait", pDuration, false}}

var matchKinds = []string{"data", "ack", "nak", "rnr", "cnp", "pfc"}

func faultKindNames() []string {
	out := make([]string, len(faultKinds))
	for i := range faultKinds {
		out[i] = faultKinds[i].name
	}
	return out
}

func findFaultKind(name string) *faultKind {
	for i := range faultKinds {
		if faultKinds[i].name == name {
			return &faultKinds[i]
		}
	}
	return nil
}

// faultParamNames lists every parameter of any kind.
func faultParamNames() []string {
	var out []string
	for i := range faultKinds {
		for _, p := range faultKinds[i].params {
			if !slices.Contains(out, p.name) {
				out = append(out, p.name)
			}
		}
	}
	sort.Strings(out)
	return out
}

func (k *faultKind) param(name string) *paramSpec {
	for i := range k.params {
		if k.params[i].name == name {
			return &k.params[i]
		}
	}
	return nil
}

// opcodeWords are the words for BTH opcodes (transport §1.8).
var opcodeWords = map[string]uint8{
	"send-first": 0x00, "send-middle": 0x01, "send-last": 0x02, "send-last-imm": 0x03, "send-only": 0x04, "send-only-imm": 0x05,
	"write-first": 0x06, "write-middle": 0x07, "write-last": 0x08, "write-last-imm": 0x09, "write-only": 0x0a, "write-only-imm": 0x0b,
	"read-request": 0x0c, "read-response-first": 0x0d, "read-response-middle": 0x0e, "read-response-last": 0x0f, "read-response-only": 0x10,
	"acknowledge": 0x11, "atomic-acknowledge": 0x12, "compare-swap": 0x13, "fetch-add": 0x14, "send-last-inv": 0x16, "send-only-inv": 0x17,
	"cnp": 0x81,
}

// OpcodeName returns the word for a BTH opcode, empty when there is none.
func OpcodeName(op uint8) string {
	for w, o := range opcodeWords {
		if o == op {
			return w
		}
	}
	return ""
}

func opcodeNames() []string {
	out := make([]string, 0, len(opcodeWords))
	for w := range opcodeWords {
		out = append(out, w)
	}
	sort.Strings(out)
	return out
}
