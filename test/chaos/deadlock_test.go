package chaos

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

// A deadlock whose switches run in different processes is found like in one.
func TestDeadlockAcrossProcesses(t *testing.T) {
	for _, file := range []string{"disasters/deadlock-ring.yaml", "disasters/deadlock-after-link-failure.yaml"} {
		t.Run(filepath.Base(file), func(t *testing.T) { deadlockIn(t, fabric{file: file}) })
	}
}

func deadlockIn(t *testing.T, f fabric) {
	want := alone(t, f.plan(t))
	if len(want.Deadlocks) == 0 {
		t.Fatal("the example has no deadlock any more")
	}
	l := cluster(t, 3, nil)
	got, run, _ := l.result(l.submit(f.plan(t), 3, nil), nil)
	owners := map[string]bool{}
	for _, s := range run.Slots {
		owners[s.Owner] = true
	}
	if len(owners) != 3 {
		t.Fatalf("on %d processes", len(owners))
	}
	a, _ := json.Marshal(got.Deadlocks)
	b, _ := json.Marshal(want.Deadlocks)
	if string(a) != string(b) || got.Digest != want.Digest {
		t.Errorf("deadlocks %s, alone %s; digest %s, alone %s", a, b, got.Digest, want.Digest)
	}
}
