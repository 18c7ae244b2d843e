package coord

import (
	"sync"
	"sync/atomic"
)

// Replica is a process's copy of the ledger's state: fed by Raft on a
// coordinator, by the leader's feed elsewhere. Readers see it under its lock.
type Replica struct {
	mu      sync.Mutex
	s       *State
	changed chan struct{}
	version atomic.Uint64
	// onApply is called under the lock with each entry applied; it must not block.
	onApply func(seq uint64, entry []byte)
}

// NewReplica starts empty.
func NewReplica() *Replica { return &Replica{s: NewState(), changed: make(chan struct{})} }

// Apply executes one committed entry.
func (r *Replica) Apply(b []byte) Result {
	e, err := DecodeEntry(b)
	r.mu.Lock()
	defer r.mu.Unlock()
	var res Result
	if err != nil { // the same bytes are malformed on every replica
		r.s.Seq++
		res = Result{Err: err.Error(), Seq: r.s.Seq}
	} else {
		res = r.s.Apply(e)
	}
	if r.onApply != nil {
		r.onApply(r.s.Seq, b)
	}
	r.wake()
	return res
}

// ApplyAt applies the entry with this number if it is the next one; it reports
// whether the replica has it now.
func (r *Replica) ApplyAt(seq uint64, b []byte) bool {
	r.mu.Lock()
	have := r.s.Seq
	r.mu.Unlock()
	if seq <= have {
		return true
	}
	if seq != have+1 {
		return false
	}
	r.Apply(b)
	return true
}

// Load replaces the state, unless the one there is newer.
func (r *Replica) Load(s *State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Seq >= r.s.Seq {
		r.s = s
		r.wake()
	}
}

// Restore replaces the state whatever is there (a Raft snapshot).
func (r *Replica) Restore(s *State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s = s
	r.wake()
}

func (r *Replica) wake() {
	r.version.Add(1)
	close(r.changed)
	r.changed = make(chan struct{})
}

// View calls f with the state; f must not keep references to it.
func (r *Replica) View(f func(*State)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.s)
}

// Changed is closed at the next change.
func (r *Replica) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// Version changes with the state; cheap enough for every window.
func (r *Replica) Version() uint64 { return r.version.Load() }

// Seq is the number of applied entries.
func (r *Replica) Seq() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.s.Seq
}
