package sweep

import (
	"slices"
	"strings"
	"testing"
)

func TestParseAxis(t *testing.T) {
	for arg, want := range map[string]string{
		"switches.all.pfc.alpha=1/16,1/8, 1":         "1/16 1/8 1",
		"switches.all.pfc.alpha=1/128..8":            "1/128 1/64 1/32 1/16 1/8 1/4 1/2 1 2 4 8",
		"switches.all.pfc.alpha=1/16..1:3":           "1/16 1/4 1",
		"switches.all.buffer.size=1MB..64MB:4":       "1MB 4MB 16MB 64MB",
		"switches.all.buffer.size=1MiB..2MiB:3":      "1MiB 1570KB 2MiB",
		"switches.all.ecn.kmin=100KB..200KB:3":       "100KB 150KB 200KB",
		"rnics.all.qp.timeout=10..14":                "10 11 12 13 14",
		"rnics.all.qp.min_rnr_timer=1..31:4":         "1 11 21 31",
		"topology.links.uplink.rate=25Gbps..100Gbps": "25Gbps 43.8Gbps 62.5Gbps 81.3Gbps 100Gbps",
		"rnics.all.qp.recv_repost=1us..1ms:4":        "1us 10us 100us 1ms",
		"switches.all.pfc.priorities=[3],[3,4]":      "[3] [3,4]",
		"x=1KB..2KB:2,5KB":                           "1KB 2KB 5KB",
	} {
		ax, err := ParseAxis(arg)
		if err != nil || !slices.Equal(ax.Values, strings.Fields(want)) {
			t.Errorf("%s: %q (%v), want %s", arg, ax.Values, err, want)
		}
	}
	for arg, want := range map[string]string{
		"switches":           "want PATH=",
		"x=":                 "want PATH=",
		"x=1,1":              "twice",
		"x=1,,2":             "empty",
		"x=1MB..10us":        "one kind",
		"x=10KB..1KB":        "first one smaller",
		"x=1KB..2KB:1":       "allowed 2",
		"x=a..b":             "no number",
		"x=1furlong..2miles": "needs a unit",
		"x=1/3..1/2.5":       "no number",
	} {
		if _, err := ParseAxis(arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
}
