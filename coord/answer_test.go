package coord

import (
	"testing"
	"time"
)

func TestReplicaReaches(t *testing.T) {
	r := NewReplica()
	e, err := (&Entry{Kind: KindMember, Member: &Member{Name: "m", Boot: "1"}}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	r.Apply(e)
	for _, seq := range []uint64{0, 1} {
		if !r.reaches(seq, 0) {
			t.Errorf("%d is not reached at 1", seq)
		}
	}
	if r.reaches(2, 10*time.Millisecond) {
		t.Error("2 is reached at 1")
	}
	go r.Apply(e)
	if !r.reaches(2, 10*time.Second) {
		t.Error("2 is not reached once applied")
	}
}
