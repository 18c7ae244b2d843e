package coord

import (
	"context"
	"encoding/json"
	"time"
)

// feedOut publishes what was committed to processes that are not voters; only
// the leader does. It runs under the replica's lock.
func (n *Node) feedOut(seq uint64, entry []byte) {
	if n.cons == nil || !n.cons.leads() {
		return
	}
	n.sendFeed(feed{Leader: n.cfg.Name, Seq: seq, Entry: entry})
}

func (n *Node) sendFeed(f feed) {
	b, err := json.Marshal(&f)
	if err == nil && len(b) > n.ctl.MaxPayload() { // a large fabric file: members fetch the state
		f.Entry = nil
		b, err = json.Marshal(&f)
	}
	if err == nil {
		err = n.ctl.Publish(subjLedger, b)
	}
	if err != nil {
		n.log.Debug("ledger feed", "err", err)
	}
}

// feedIn follows the feed; a gap is filled with the whole state.
func (n *Node) feedIn(m *request) {
	var f feed
	if err := json.Unmarshal(m.Data, &f); err != nil {
		n.log.Warn("malformed ledger feed", "err", err)
		return
	}
	n.lastFed.Store(time.Now().UnixNano())
	n.leadBy.Store(&f.Leader)
	n.ready.Store(true)
	if len(f.Entry) > 0 && n.rep.ApplyAt(f.Seq, f.Entry) || f.Seq <= n.rep.Seq() {
		return
	}
	n.catchUp(f.Seq)
}

// catchUp loads the state in pieces from a coordinator that has at least seq.
func (n *Node) catchUp(seq uint64) {
	var b []byte
	for {
		q, _ := json.Marshal(syncRequest{Seq: seq, Offset: len(b)})
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		p, err := n.ctl.Request(ctx, subjSync, q)
		cancel()
		if err != nil {
			n.log.Debug("ledger state", "err", err)
			return
		}
		var a syncAnswer
		if json.Unmarshal(p, &a) != nil || a.Seq < seq || a.Offset != len(b) || a.Total > 1<<30 {
			return // the next beacon tries again
		}
		if len(b) > 0 && a.Seq != seq {
			return
		}
		seq = a.Seq
		b = append(b, a.Piece...)
		if len(b) >= a.Total {
			break
		}
	}
	s, err := DecodeState(b)
	if err != nil {
		n.log.Error("ledger state", "err", err)
		return
	}
	n.rep.Load(s)
}

type syncRequest struct {
	Seq    uint64 `json:"seq"`
	Offset int    `json:"offset"`
}

type syncAnswer struct {
	Seq    uint64 `json:"seq"`
	Offset int    `json:"offset"`
	Total  int    `json:"total"`
	Piece  []byte `json:"piece"`
	// Sum tells pieces of one content from those of the next.
	Sum string `json:"sum,omitempty"`
}

const syncPiece = 384 << 10

// onSync answers with a piece of the state.
func (n *Node) onSync(m *request) {
	var q syncRequest
	if json.Unmarshal(m.Data, &q) != nil {
		return
	}
	var b []byte
	var seq uint64
	n.rep.View(func(s *State) {
		seq = s.Seq
		if seq >= q.Seq {
			b, _ = s.Encode()
		}
	})
	a := syncAnswer{Seq: seq, Offset: q.Offset, Total: len(b)}
	if q.Offset >= 0 && q.Offset < len(b) {
		a.Piece = b[q.Offset:min(len(b), q.Offset+syncPiece)]
	}
	if out, err := json.Marshal(&a); err == nil {
		m.Answer(out)
	}
}
