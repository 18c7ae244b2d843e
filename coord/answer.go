package coord

import (
	"strconv"
	"time"

	"github.com/nats-io/nats.go/micro"
)

// HeaderSeq carries a ledger number. In a request: the answer must know at
// least so many entries. In an answer: it knows so many. A client that sends
// the largest it has seen never looks into its own past, whichever coordinator
// answers it.
const HeaderSeq = "Emu-Seq"

// CodeLags is the error code of a coordinator that has not got that far (one
// that was stopped, or has just been started again): another may have.
const CodeLags = "503"

// patience is how long a coordinator waits for entries it lacks; less than a
// client's patience with one answer.
const patience = 500 * time.Millisecond

// answer serves a question.
func (n *Node) answer(q micro.Request, h func([]byte) (any, error)) {
	if !n.current(q) {
		return
	}
	v, err := h(q.Data())
	if err != nil {
		_ = q.Error("400", err.Error(), nil, n.knows())
		return
	}
	_ = q.RespondJSON(v, n.knows())
}

// command checks an entry from a client and has the leader commit it.
func (n *Node) command(q micro.Request, kind Kind) {
	if !n.current(q) {
		return
	}
	r, err := n.admit(q.Data(), kind)
	if err != nil {
		r = Result{Err: err.Error()}
	}
	_ = q.RespondJSON(r, n.knows())
}

// current reports whether the ledger's copy here can answer, and says so itself
// where it cannot.
func (n *Node) current(q micro.Request) bool {
	if n.caughtUp(patience) && n.rep.reaches(q.Headers().Get(HeaderSeq), patience) {
		return true
	}
	_ = q.Error(CodeLags, "the coordinator "+n.cfg.Name+" lags behind the ledger", nil)
	return false
}

// catchUp is for how long after its start a coordinator that the ledger does not
// have as a member yet says nothing of it: without a quorum it never will.
const catchUp = 5 * time.Second

// caughtUp waits until the ledger's copy here has what was entered before this
// process was started: then it has its member entry, which came after.
func (n *Node) caughtUp(wait time.Duration) bool {
	late := time.NewTimer(wait)
	defer late.Stop()
	for {
		changed := n.rep.Changed()
		if n.settled.Load() || n.joined() || time.Since(n.since) > catchUp {
			n.settled.Store(true)
			return true
		}
		select {
		case <-changed:
		case <-late.C:
			return false
		}
	}
}

// knows is the header of an answer.
func (n *Node) knows() micro.RespondOpt {
	return micro.WithHeaders(micro.Headers{HeaderSeq: {strconv.FormatUint(n.rep.Seq(), 10)}})
}

// reaches waits until the replica has the entry numbered seq ("" = none) and
// reports whether it has.
func (r *Replica) reaches(seq string, wait time.Duration) bool {
	want, err := strconv.ParseUint(seq, 10, 64)
	if err != nil {
		return true
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	for {
		changed := r.Changed()
		if r.Seq() >= want {
			return true
		}
		select {
		case <-changed:
		case <-late.C:
			return false
		}
	}
}
