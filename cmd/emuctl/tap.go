package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/coord/emu"
	pcapng "github.com/rocemu/rocemu/nodes/capture"
)

// tapped is a frame off a running fabric.
type tapped struct {
	AtPS   int64  `json:"at_ps"`
	Dir    string `json:"dir"`
	Length int    `json:"length"`
	Bytes  string `json:"bytes"` // hex, destination MAC through FCS
	Note   string `json:"note,omitempty"`
	Missed int    `json:"missed,omitempty"` // frames left out before this one
	raw    []byte
}

type tapFlags struct {
	clusterFlags
	Hex   bool `flag:"hex,x" help:"print the bytes"`
	Count int  `flag:"count,c" help:"end after so many frames, 0 = with the run"`
}

func (a *app) tap() *cobra.Command {
	var f tapFlags
	return a.command(verb{
		use: "tap DEVICE:PORT [--hex] [--count N] [--nats URL --creds FILE]", short: "Publish a running port's wire bytes on a NATS subject, and list them",
		long: `While it runs, every frame that passes the port, in both directions, is published
on the subject emu.tap.DEVICE.PORT: the bytes from destination MAC through FCS, with
the headers Emu-Time-Ps (virtual, the last bit passes), Emu-Dir (in, out), Emu-Note
and Emu-Missed (frames left out before this one: the fabric waits for nobody). After
the run a message without a frame, with the header Emu-End, comes from each process.
Any NATS client may subscribe. The frames are listed here too, with --json one a line.`,
		example: "  emuctl tap leaf1:1\n  emuctl tap leaf1:1 > /dev/null & nats sub 'emu.tap.leaf1.1' --raw",
		args:    cobra.ExactArgs(1), flags: &f,
		run: func(ctx context.Context, args []string) error {
			return a.listen(ctx, &f.clusterFlags, args[0], f.Count, nil, func(t *tapped) error { return a.showTapped(t, f.Hex) })
		},
	})
}

func (a *app) showTapped(t *tapped, bytes bool) error {
	if a.json {
		return json.NewEncoder(a.out).Encode(t)
	}
	line := fmt.Sprintf("%16s ns  %-3s  %5d B", clock.Time(t.AtPS).NS(), t.Dir, t.Length)
	if t.Note != "" {
		line += "  " + t.Note
	}
	if t.Missed > 0 {
		line += fmt.Sprintf("  (%d frames before it are missing)", t.Missed)
	}
	if bytes {
		line += "\n" + strings.TrimRight(hex.Dump(t.raw), "\n")
	}
	return a.printf("%s\n", line)
}

// listen taps a port of a cluster's current run and visits what passes; begin,
// if any, is called first, once it is sure that something can pass.
func (a *app) listen(ctx context.Context, f *clusterFlags, where string, most int, begin func() error, visit func(*tapped) error) error {
	return a.onRun(ctx, f, func(ctx context.Context, r *liveRun) error {
		dev, port, ok := devicePort(where)
		if !ok {
			return fmt.Errorf("%q: want DEVICE:PORT, as in leaf1:1", where)
		}
		tapped, err := capture(r.plan, dev, port)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		if r.ended() {
			return fmt.Errorf("the run has ended; nothing passes %s any more", where)
		}
		if begin != nil {
			if err := begin(); err != nil {
				return err
			}
		}
		arg := emu.TapArg{Device: r.plan.Devices[tapped.Dev].Name, Port: tapped.Port}
		subject := emu.TapSubject(arg)
		fmt.Fprintf(a.err, "%s is on subject %s\n", where, subject)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		n, lost := 0, 0
		var bad error
		err = r.c.Listen(ctx, len(r.st.Slots), coord.Look{Run: r.st.ID, What: emu.AskTap, Arg: emu.Arg(arg)}, subject, func(m *nats.Msg) {
			if bad != nil || most > 0 && n == most {
				return
			}
			t := readTapped(m)
			t.Missed, lost = t.Missed+lost, 0
			n++
			if bad = visit(t); bad != nil || n == most {
				cancel()
			}
		}, func(k int) { lost += k })
		return cmp.Or(bad, err)
	})
}

func readTapped(m *nats.Msg) *tapped {
	t := &tapped{Dir: m.Header.Get(emu.TapDir), Length: len(m.Data), Bytes: hex.EncodeToString(m.Data), Note: m.Header.Get(emu.TapNote), raw: m.Data}
	t.AtPS, _ = strconv.ParseInt(m.Header.Get(emu.TapTime), 10, 64)
	t.Missed, _ = strconv.Atoi(m.Header.Get(emu.TapMissed))
	return t
}

// livePcap writes what passes a port of a running fabric.
func (a *app) livePcap(ctx context.Context, f *pcapFlags, where string) error {
	w := &tapWriter{}
	err := a.listen(ctx, &f.clusterFlags, where, f.Count, func() error { return w.open(f.Write, where) }, w.add)
	if w.pcap == nil {
		return err
	}
	err = cmp.Or(err, w.flush(time.Time{}), w.pcap.Close(), w.out.Flush(), w.file.Close())
	fmt.Fprintf(a.err, "%d frames, %d missing\n", w.n, w.missed)
	return err
}

// open begins the file.
func (w *tapWriter) open(name, where string) (err error) {
	if w.file, err = createFile(name); err != nil {
		return err
	}
	w.out = bufio.NewWriter(w.file)
	if w.pcap, err = pcapng.New(w.out, pcapng.Options{App: "rocemu"}); err != nil {
		return err
	}
	dev, port, _ := strings.Cut(where, ":")
	w.id, err = w.pcap.Port(dev, port, 0)
	return err
}

// reorder is how long frames wait for earlier ones of the other direction,
// which may come from another process.
const reorder = 300 * time.Millisecond

// tapWriter puts tapped frames into the order of their time.
type tapWriter struct {
	file   io.WriteCloser
	pcap   *pcapng.Writer
	out    *bufio.Writer
	id     int
	held   []tapped
	came   []time.Time // by held
	n      int
	missed int
}

func (w *tapWriter) add(t *tapped) error {
	w.held, w.came = append(w.held, *t), append(w.came, time.Now())
	w.n++
	w.missed += t.Missed
	if time.Since(w.came[0]) < 2*reorder {
		return nil
	}
	return cmp.Or(w.flush(time.Now().Add(-reorder)), w.out.Flush())
}

// flush writes what came before an instant, the zero one for all.
func (w *tapWriter) flush(before time.Time) error {
	n := len(w.held)
	for i, t := range w.came {
		if !before.IsZero() && t.After(before) {
			n = i
			break
		}
	}
	slices.SortStableFunc(w.held[:n], func(x, y tapped) int { return cmp.Compare(x.AtPS, y.AtPS) })
	for i := range w.held[:n] {
		t := &w.held[i]
		dir := pcapng.DirIn
		if t.Dir == "out" {
			dir = pcapng.DirOut
		}
		note := t.Note
		if t.Missed > 0 {
			note = strings.TrimSpace(fmt.Sprintf("%s (%d frames before this one are missing)", note, t.Missed))
		}
		if err := w.pcap.Packet(w.id, clock.Time(t.AtPS), dir, t.raw, note); err != nil {
			return err
		}
	}
	w.held, w.came = append(w.held[:0], w.held[n:]...), append(w.came[:0], w.came[n:]...)
	return nil
}
