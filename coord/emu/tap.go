package emu

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/nodes/capture"
	"github.com/rocemu/rocemu/sim"
)

// AskTap has the wire bytes of a port published for a while; arg: [TapArg]. It
// is asked again for as long as somebody listens.
const AskTap = "tap"

// TapArg names a port.
type TapArg struct {
	Device string `json:"device"`
	Port   int    `json:"port"`
}

// Headers of a tapped frame's message. Its data are the bytes from destination
// MAC through FCS.
const (
	TapTime   = "Emu-Time-Ps" // virtual, at which the last bit passes the port
	TapDir    = "Emu-Dir"     // in or out, as seen from the port
	TapNote   = "Emu-Note"    // what a PFC frame pauses, which transmission it is
	TapMissed = "Emu-Missed"  // frames of the port left out before this one, as the reader was too slow
)

const (
	tapTTL    = 10 * time.Second // a tap that is not asked for again ends; who asks each second may wait 5 s for answers
	tapQueue  = 4096             // frames that may wait to be published
	lookEvery = 16               // reads between two looks at the clock
	maxTaps   = 16               // in one share
)

// tap is a port under observation.
type tap struct {
	arg    TapArg
	port   *sim.PortTap
	until  time.Time
	missed int
	gone   uint64 // of missed, those that the engine's tap had to leave out
}

// taps are a share's, with the frames on their way out.
type taps struct {
	list  []*tap
	reads uint64
	out   chan coord.Message
}

// Speak implements coord.Speaker.
func (s *share) Speak(say func(coord.Message)) (stop func()) {
	s.taps.out = make(chan coord.Message, tapQueue)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case m := <-s.taps.out:
				say(m)
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

// ask starts a tap or lets it live on.
func (t *taps) ask(f *sim.Fabric, b []byte) error {
	var a TapArg
	if err := json.Unmarshal(b, &a); err != nil {
		return err
	}
	until := time.Now().Add(tapTTL)
	for _, x := range t.list {
		if x.arg == a {
			x.until = until
			return nil
		}
	}
	if len(t.list) == maxTaps || t.out == nil {
		return fmt.Errorf("no more than %d ports can be tapped at once", maxTaps)
	}
	for i := range f.Plan.Devices {
		if f.Plan.Devices[i].Name == a.Device {
			p, err := f.TapPort(int32(i), a.Port)
			if err == nil {
				t.list = append(t.list, &tap{arg: a, port: p, until: until})
			}
			return err
		}
	}
	return fmt.Errorf("no device %q", a.Device)
}

// last says that all that passed has been said; the share has run to its end.
func (t *taps) last(share int32, b []byte) error {
	var a TapArg
	if err := json.Unmarshal(b, &a); err != nil || t.out == nil {
		return err
	}
	t.read()
	m := coord.Message{Subject: TapSubject(a), Header: map[string]string{coord.HeaderEnd: strconv.Itoa(int(share))}}
	for _, x := range t.list {
		if x.arg == a && x.missed > 0 {
			m.Header[TapMissed], x.missed = strconv.Itoa(x.missed), 0
		}
	}
	t.out <- m // behind all frames; nobody runs whom that holds up
	return nil
}

// read publishes what passed; it runs between windows.
func (t *taps) read() {
	t.reads++
	for i := 0; i < len(t.list); i++ {
		x := t.list[i]
		x.port.Read(func(p *sim.Passing) { t.say(x, p) })
		gone := x.port.Missed() // they passed after those that were kept
		x.missed += int(gone - x.gone)
		x.gone = gone
		if t.reads%lookEvery == 0 && time.Now().After(x.until) {
			x.port.Close()
			t.list = append(t.list[:i], t.list[i+1:]...)
			i--
		}
	}
}

// say queues a frame, or counts it where too many wait.
func (t *taps) say(x *tap, p *sim.Passing) {
	m := coord.Message{Subject: TapSubject(x.arg), Data: p.Wire, Header: map[string]string{TapTime: strconv.FormatInt(int64(p.At), 10), TapDir: "in"}}
	if p.Dir == capture.DirOut {
		m.Header[TapDir] = "out"
	}
	if p.Note != "" {
		m.Header[TapNote] = p.Note
	}
	if x.missed > 0 {
		m.Header[TapMissed] = strconv.Itoa(x.missed)
	}
	select {
	case t.out <- m:
		x.missed = 0
	default:
		x.missed++
	}
}

// TapSubject is where the frames of a port are published.
func TapSubject(a TapArg) string { return fmt.Sprintf("emu.tap.%s.%d", a.Device, a.Port) }

var _ coord.Speaker = (*share)(nil)
