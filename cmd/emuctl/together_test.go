package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/report"
)

// asks runs a command, wants an exit code and a text in what it says, and returns
// its output.
func asks(t *testing.T, code int, want string, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if got := emuctl(args, &out, &errs); got != code || !strings.Contains(out.String()+errs.String(), want) {
		t.Errorf("%v: exit code %d, want %d and %q: %s%s", args, got, code, want, out.String(), errs.String())
	}
	return out.String()
}

// names are the names of what inject and set made, which has to be at one instant.
func names(t *testing.T, out string) (l []string) {
	t.Helper()
	var made []injected
	if err := json.Unmarshal([]byte(out), &made); err != nil || len(made) == 0 {
		t.Fatalf("%v: %s", err, out)
	}
	for _, x := range made {
		if l = append(l, x.Name); x.At != made[0].At || x.At == 0 {
			t.Errorf("%s at %v, the first of them at %v", x.Name, x.At, made[0].At)
		}
	}
	return l
}

// Several settings of one command change at one instant, are judged as a whole
// and are taken or refused as a whole; so do they end, and so do faults.
func TestSetTogether(t *testing.T) {
	t.Setenv("ROCEMU_CONTEXTS", filepath.Join(t.TempDir(), "contexts"))
	l := goLive(t, endless)
	says(t, "SLOT", "status")
	const kmin, kmax = "switches.leaf.ecn.kmin=", "switches.leaf.ecn.kmax="
	asks(t, report.ExitOK, "", "set", kmin+"50KB", kmax+"90KB")
	asks(t, report.ExitUsage, "must not be above kmax", "set", kmin+"500KB")
	first := names(t, asks(t, report.ExitOK, "", "set", kmin+"500KB", kmax+"900KB", "--json"))
	if len(first) != 2 {
		t.Fatalf("%v", first)
	}
	asks(t, report.ExitUsage, "none of the 2 takes effect: the settings in force", "set", kmin+"950KB", "switches.leaf.pfc.alpha=1/4")
	asks(t, report.ExitUsage, `none of the 2 takes effect: "set switches.leaf.ecn.kmix to=1KB"`, "set", kmin+"1KB", "switches.leaf.ecn.kmix=1KB")
	asks(t, report.ExitUsage, "1us lies before", "set", kmin+"1KB", kmax+"2KB", "--at", "1us")
	asks(t, report.ExitUsage, "must not be above kmax", "revert", first[1])
	asks(t, report.ExitUsage, `no live fault "nosuch"`, "revert", first[0], "nosuch")
	asks(t, report.ExitUsage, "1us lies before", "revert", first[0], first[1], "--at", "1us")
	names(t, asks(t, report.ExitOK, "", "fault", "inject", "link-down leaf1:uplink1 for=1us", "drop rnic1:1 count=1", "--json"))
	if list := asks(t, report.ExitOK, "", "fault", "list"); strings.Count(list, "live") != 6 {
		t.Errorf("what was refused is there, or what was taken is not:\n%s", list)
	}
	var end struct {
		At int64 `json:"at_ps"`
	}
	if out := asks(t, report.ExitOK, "", "revert", first[0], first[1], "--json"); json.Unmarshal([]byte(out), &end) != nil || end.At == 0 {
		t.Errorf("no one JSON value: %s", out)
	}
	asks(t, report.ExitUsage, "must not be above kmax 90KB", "set", kmin+"500KB")
	says(t, "saved here at", "snapshot", "save", "here") // it has come to where all are in force
	if code := l.ended(t); code != report.ExitLimit {
		t.Errorf("exit code %d, want %d: %s", code, report.ExitLimit, l.errs.String())
	}
}

// Planned changes of one instant that fit only together are no reason to refuse
// live ones.
func TestSetBesidePlannedTogether(t *testing.T) {
	t.Setenv("ROCEMU_CONTEXTS", filepath.Join(t.TempDir(), "contexts"))
	l := goLive(t, endless+`switches: {all: {ecn: {kmin: 50KB, kmax: 90KB}}}
changes: [switches.leaf.ecn.kmin=500KB at=1us, switches.leaf.ecn.kmax=900KB at=1us]
`)
	says(t, "SLOT", "status")
	asks(t, report.ExitOK, "set-", "set", "switches.leaf.ecn.kmin=550KB")
	asks(t, report.ExitUsage, "must not be above kmax 900KB", "set", "switches.leaf.ecn.kmin=950KB")
	l.ended(t)
}

// A snapshot replaces another one only with --force, which says so, and is not
// taken later than it was asked for.
func TestSaveOverAnother(t *testing.T) {
	t.Setenv("ROCEMU_CONTEXTS", filepath.Join(t.TempDir(), "contexts"))
	l := goLive(t, endless)
	says(t, "SLOT", "status")
	asks(t, report.ExitOK, "saved here at", "snapshot", "save", "here")
	had := asks(t, report.ExitOK, "here", "snapshot", "list")
	asks(t, report.ExitUsage, `a snapshot "here" is there already, of run `, "snapshot", "save", "here")
	for _, at := range []string{"0s", "1us"} {
		asks(t, report.ExitUsage, at+" lies before ", "snapshot", "save", "past", "--at", at)
	}
	if have := asks(t, report.ExitOK, "", "snapshot", "list"); have != had {
		t.Errorf("refusals changed what is kept:\n%s%s", had, have)
	}
	asks(t, report.ExitOK, ", in place of that of run ", "snapshot", "save", "here", "--force")
	asks(t, report.ExitOK, `"replaced": {`, "snapshot", "save", "here", "--force", "--json")
	if out := asks(t, report.ExitOK, "saved there at", "snapshot", "save", "there", "--force"); strings.Contains(out, "in place of") {
		t.Errorf("there was none: %s", out)
	}
	l.ended(t)
}
