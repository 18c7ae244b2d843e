package client

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rocemu/rocemu/coord"
)

// Frames that a busy process publishes long after the run's end are received:
// the tap ends with the process's word that it has said all.
func TestTapEndsWithTheLastFrame(t *testing.T) {
	c := stub(t, "status", func(*nats.Msg, int64) *nats.Msg {
		return says(1, coord.Status{Seq: 1, Run: &coord.RunStatus{ID: "r", Phase: coord.Ended}})
	})
	nc, looks := c.conn.NATS(), 0
	_, err := nc.Subscribe("emu.ctl.look", func(q *nats.Msg) {
		b, _ := json.Marshal(coord.Seen{Run: "r", Slots: 1, Pieces: 1})
		_ = q.Respond(b)
		if looks++; looks != 2 {
			return
		}
		go func() {
			time.Sleep(tapAgain) // the process has no core
			_ = nc.Publish("frames", []byte("late"))
			end := nats.NewMsg("frames")
			end.Header.Set(coord.HeaderEnd, "0")
			_ = nc.PublishMsg(end)
		}()
	})
	if err != nil {
		t.Fatal(err)
	}
	t0, got := time.Now(), 0
	err = c.Listen(t.Context(), 1, coord.Look{Run: "r"}, "frames", func(m *nats.Msg) {
		if string(m.Data) == "late" {
			got++
		}
	}, func(int) {})
	if err != nil || got != 1 {
		t.Errorf("%d frames, %v", got, err)
	}
	if took := time.Since(t0); took >= lastWords {
		t.Errorf("it took %v, although all was said", took)
	}
}
