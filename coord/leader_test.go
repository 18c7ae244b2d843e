package coord

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

// soleVoter leads a ledger of one copy.
type soleVoter struct {
	voter
	rep *Replica
}

func (v soleVoter) leads() bool                                       { return true }
func (v soleVoter) propose(b []byte, _ time.Duration) (Result, error) { return v.rep.Apply(b), nil }

// A leader may be elected before its copy of the ledger has what is committed,
// as after a restart of all. Who is a member by that and never heard of must be
// evicted like others: its slots stayed where nobody ran them.
func TestUnheardMemberIsEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(Config{Name: "a", Build: "b", Silence: 2 * time.Second, Log: hclog.NewNullLogger()}, "1")
		n.vote(soleVoter{rep: n.rep})
		n.rep.onApply = nil
		n.lead.elected()
		n.lead.members()
		e, _ := (&Entry{Kind: KindMember, Member: &Member{Name: "lost", Boot: "0", Build: "b"}}).Encode()
		n.rep.Apply(e)
		up := func() (up bool) {
			n.rep.View(func(s *State) { up = s.Members["lost"].Up })
			return up
		}
		n.lead.members()
		time.Sleep(time.Second)
		if n.lead.members(); !up() {
			t.Error("evicted after a second")
		}
		time.Sleep(1500 * time.Millisecond)
		if n.lead.members(); up() {
			t.Error("not evicted after 2.5 s of silence")
		}
	})
}

// A leader that was stopped for longer than a member may be silent has heard
// nobody meanwhile: it evicts nobody for that, and who is lost a little later.
func TestStoppedLeaderEvictsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(Config{Name: "a", Build: "b", Silence: 2 * time.Second, Log: hclog.NewNullLogger()}, "1")
		n.vote(soleVoter{rep: n.rep})
		n.rep.onApply = nil
		e, _ := (&Entry{Kind: KindMember, Member: &Member{Name: "m", Boot: "0", Build: "b"}}).Encode()
		n.rep.Apply(e)
		up := func() (up bool) {
			n.rep.View(func(s *State) { up = s.Members["m"].Up })
			return up
		}
		n.lead.elected()
		for range 5 {
			n.lead.runs()
			n.lead.members()
			time.Sleep(beatEvery)
		}
		time.Sleep(time.Minute) // nothing of this process runs
		if n.lead.members(); !up() {
			t.Fatal("evicted for what the leader did not hear while it was stopped")
		}
		for range 4 {
			time.Sleep(beatEvery)
			n.lead.runs()
		}
		if n.lead.members(); !up() {
			t.Error("evicted after 1.8 s")
		}
		for range 2 {
			time.Sleep(beatEvery)
			n.lead.runs()
		}
		if n.lead.members(); up() {
			t.Error("not evicted after 2.2 s of silence")
		}
	})
}
