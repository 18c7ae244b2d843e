package coord

import (
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/rocemu/rocemu/internal/halt"
)

// A leader that was stopped while an entry was under way for longer than a disk
// may take has no disk that hangs: it would end its process.
func TestStopIsNoHungDisk(t *testing.T) {
	const wait = time.Second
	if halt.Each(t, 2*wait) {
		return
	}
	rep := NewReplica()
	rep.onApply = func(uint64, []byte) {
		halt.Here(t)
		time.Sleep(wait / 20) // what the disk still takes
	}
	c, err := openRaft(raftConfig{name: "c1", dir: t.TempDir(), addr: "127.0.0.1:0", timing: DefaultTiming, log: hclog.NewNullLogger()}, rep)
	if err != nil {
		t.Fatal(err)
	}
	defer c.kill()
	if err := c.bootstrap(map[string]string{"c1": c.told()}); err != nil {
		t.Fatal(err)
	}
	for !c.leads() {
		time.Sleep(time.Millisecond)
	}
	e, err := (&Entry{Kind: KindMember, Member: &Member{Name: "m", Boot: "1"}}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.propose(e, wait); err != nil {
		t.Fatal(err)
	}
}
