package main

import (
	"fmt"
	"testing"

	"github.com/rocemu/rocemu/report"
)

// TestFoldSteps holds that alternating retransmissions and losses become two
// runs a round, that every step is in one run, and that arrows name runs.
func TestFoldSteps(t *testing.T) {
	var steps []report.ChainStep
	add := func(op string, psn uint32, cause int, text string) {
		if op != "" {
			text = fmt.Sprintf("%s PSN %d %s", op, psn, text)
		}
		steps = append(steps, report.ChainStep{Device: "rnic1", Op: op, PSN: psn, Cause: cause, Text: text})
	}
	add("write-first", maxPSN, -1, "lost: crc")
	add("write-last", 0, -1, "lost: crc")
	for range 2 {
		add("", maxPSN, 0, "ACK timeout")
		from := len(steps) - 1
		for i := range 3 {
			psn := (maxPSN + uint32(i)) & maxPSN
			add("write-middle", psn, from, "sent again (transmission 2)")
			add("write-middle", psn, len(steps)-1, "lost: crc")
		}
	}
	add("write-middle", 7, -1, "lost: crc") // a gap: another run
	runs := foldSteps(steps, false)
	want := []struct{ n, cause int }{{2, 0}, {1, 1}, {3, 2}, {3, 3}, {1, 1}, {3, 5}, {3, 6}, {1, 0}}
	if len(runs) != len(want) {
		t.Fatalf("%d runs: %+v", len(runs), runs)
	}
	for i, w := range want {
		if runs[i].n != w.n || runs[i].cause != w.cause {
			t.Errorf("run %d: %d steps, caused by %d", i+1, runs[i].n, runs[i].cause)
		}
	}
	if s := runs[0].text(); s != "write-first..write-last PSN 16777215..0 (2 packets) lost: crc, until 0s" {
		t.Errorf("%q", s)
	}
	if all := foldSteps(steps, true); len(all) != len(steps) || all[3].cause != 3 || all[4].cause != 4 {
		t.Errorf("with all: %+v", all)
	}
}
