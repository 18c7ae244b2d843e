package client

import (
	"context"
	"encoding/json"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/rocemu/rocemu/actors/natsbus"
	"github.com/rocemu/rocemu/coord"
)

// stub is a server and one coordinator played by a function of the request
// and how many came before it.
func stub(t *testing.T, verb string, play func(q *nats.Msg, n int64) *nats.Msg) *Client {
	t.Helper()
	srv, err := natsbus.StartServer(natsbus.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Shutdown)
	c, err := Dial(natsbus.Dialer{URL: srv.ClientURL(), Name: "test", Wait: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	var n atomic.Int64
	if _, err := c.conn.NATS().Subscribe("emu.ctl."+verb, func(q *nats.Msg) { _ = q.RespondMsg(play(q, n.Add(1)-1)) }); err != nil {
		t.Fatal(err)
	}
	return c
}

func says(seq uint64, v any) *nats.Msg {
	m := nats.NewMsg("")
	m.Header.Set(coord.HeaderSeq, strconv.FormatUint(seq, 10))
	m.Data, _ = json.Marshal(v)
	return m
}

func lags() *nats.Msg {
	m := nats.NewMsg("")
	m.Header.Set(micro.ErrorHeader, "lags")
	m.Header.Set(micro.ErrorCodeHeader, coord.CodeLags)
	return m
}

// A coordinator that was just started again knows less than another has
// answered: the client says what it has seen and asks again until it is served
// by one that knows as much.
func TestNoAnswerFromThePast(t *testing.T) {
	var asked []string
	c := stub(t, "status", func(q *nats.Msg, n int64) *nats.Msg {
		asked = append(asked, q.Header.Get(coord.HeaderSeq))
		switch n {
		case 0:
			return says(7, coord.Status{Seq: 7})
		case 1, 2:
			return lags()
		}
		return says(9, coord.Status{Seq: 9})
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, want := range []uint64{7, 9, 9} {
		if s, err := c.Status(ctx); err != nil || s.Seq != want {
			t.Fatalf("status %+v, %v; want seq %d", s, err, want)
		}
	}
	for i, want := range []string{"", "7", "7", "7", "9"} {
		if asked[i] != want {
			t.Errorf("request %d asks for %q, want %q", i, asked[i], want)
		}
	}
}

// A ledger that was wiped counts from one again; the client must not wait for
// what will never come back.
func TestLedgerBegunAnew(t *testing.T) {
	c := stub(t, "status", func(q *nats.Msg, _ int64) *nats.Msg {
		if q.Header.Get(coord.HeaderSeq) != "" {
			return lags()
		}
		return says(1, coord.Status{Seq: 1})
	})
	c.saw(1000)
	for end := time.Now().Add(3 * forget); ; { // callers have less patience each than the client needs
		ctx, cancel := context.WithTimeout(t.Context(), forget/3)
		s, err := c.Status(ctx)
		cancel()
		if err == nil && s.Seq == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("status %+v, %v", s, err)
		}
	}
}

// Pieces of a record come from any coordinator; when it changes in between,
// what came first is of no use.
func TestPiecesOfOneContent(t *testing.T) {
	old, fresh := []byte(`{"phase":"running"}`), []byte(`{"phase":"done"}`)
	c := stub(t, "run", func(q *nats.Msg, n int64) *nats.Msg {
		var r struct{ Offset int }
		_ = json.Unmarshal(q.Data, &r)
		b := fresh
		if n == 0 {
			b = old
		}
		return says(uint64(n+1), map[string]any{"offset": r.Offset, "total": len(b), "piece": b[r.Offset:min(len(b), r.Offset+9)], "sum": coord.SumOf(b)})
	})
	r, err := c.Run(t.Context(), "")
	if err != nil || r.Phase != coord.Ended {
		t.Fatalf("run %+v, %v", r, err)
	}
}
