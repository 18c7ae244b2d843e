package coord

import (
	"context"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/micro"
)

// HeaderSeq carries a ledger number. In a request: the answer must know at
// least so many entries; without it, all that were in the ledger when it was
// asked, however far behind the coordinator's own copy is. In an answer: it
// knows so many. A client that sends the largest it has seen never looks into
// its own past, and one that has seen nothing never into another's, whichever
// coordinator answers it.
const HeaderSeq = "Emu-Seq"

// CodeLags is the error code of a coordinator that has not got that far (one
// that was stopped, or has just been started again) or cannot tell, since none
// leads: another may, soon.
const CodeLags = "503"

// patience is how long a coordinator waits for entries it lacks, and for the
// leader's word on how many there are; less than a client's patience with one
// answer.
const patience = 500 * time.Millisecond

// headless is how long no coordinator may lead before the others answer with
// what they have, and say that there is no quorum: longer than an election.
const headless = 3 * time.Second

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
	why := "lags behind the ledger"
	want, err := n.wanted(q.Headers().Get(HeaderSeq))
	switch {
	case err != nil:
		why = "knows of no leader"
	case n.rep.reaches(want, patience):
		return true
	}
	_ = q.Error(CodeLags, "the coordinator "+n.cfg.Name+" "+why, nil)
	return false
}

// wanted is how many entries the answer to a request with this header must know.
func (n *Node) wanted(header string) (uint64, error) {
	if want, err := strconv.ParseUint(header, 10, 64); err == nil {
		return want, nil
	}
	want, err := n.stand(patience)
	if err != nil && n.cons.heardOf() > headless {
		return 0, nil
	}
	return want, err
}

// stand asks the leader, which may be this process, how many entries the ledger
// has.
func (n *Node) stand(wait time.Duration) (uint64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	b, err := n.ctl.Request(ctx, subjStand, nil)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(string(b), 10, 64)
}

// onStand answers with the ledger's number; only a leader that the others still
// follow does, once its own copy has all that was committed under earlier ones.
func (n *Node) onStand(m *request) {
	if !n.cons.leads() {
		return
	}
	go func() {
		if n.cons.barrier(patience) == nil {
			m.Answer(strconv.AppendUint(nil, n.rep.Seq(), 10))
		}
	}()
}

// knows is the header of an answer.
func (n *Node) knows() micro.RespondOpt {
	return micro.WithHeaders(micro.Headers{HeaderSeq: {strconv.FormatUint(n.rep.Seq(), 10)}})
}

// reaches waits until the replica has so many entries and reports whether it
// has.
func (r *Replica) reaches(want uint64, wait time.Duration) bool {
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
