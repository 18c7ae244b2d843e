package actors

import "github.com/rocemu/rocemu/nodes/wire"

// Tap reads the frames that go over one direction of a cable, without a branch
// on their path: between windows all that was sent is still in the channel. In
// rounds, where it may be gone before anybody looks, a tapped channel's frames
// are copied when they are published. It belongs to the process that hosts the
// receiver.
type Tap struct {
	c      *Channel
	frames uint64 // ordinal of the first frame not read
	late   uint64
	missed uint64
	kept   []wire.Frame // copied and not read
	next   *Tap         // of the same channel
}

// mostKept bounds what waits in a tap, in frames.
const mostKept = 1 << 16

// TapTo returns a tap on what travels toward port p of hosted device d, nil
// when there is no cable. An engine's Stride is set before.
func (e *Engine) TapTo(d int32, p int) *Tap {
	c := e.docks[d].in()[p-1]
	if c == nil {
		return nil
	}
	t := &Tap{c: c, frames: c.popped, late: c.lateN - uint64(len(c.lateQ))}
	if e.Stride >= leastRound {
		t.next, c.tap, c.extra = c.tap, t, true
	}
	return t
}

// Close ends a tap.
func (t *Tap) Close() {
	for at := &t.c.tap; *at != nil; at = &(*at).next {
		if *at == t {
			*at = t.next
			return
		}
	}
}

// keep copies what the tap has not seen, for it and those after it.
func (t *Tap) keep() {
	for ; t != nil; t = t.next {
		t.read(func(f *wire.Frame) {
			if len(t.kept) == mostKept {
				t.missed++
				return
			}
			t.kept = append(t.kept, *f)
		})
	}
}

// Read visits what was sent since the last call, in order of arrival, PFC and
// delayed frames of a visit last. It is called between windows (see
// [Engine.Observe]) and after the run; the frame is valid during the visit and
// must not be changed.
func (t *Tap) Read(visit func(f *wire.Frame)) {
	for i := range t.kept {
		visit(&t.kept[i])
	}
	t.kept = t.kept[:0]
	t.read(visit)
}

func (t *Tap) read(visit func(f *wire.Frame)) {
	c := t.c
	if c.popped > t.frames {
		t.missed += c.popped - t.frames
		t.frames = c.popped
	}
	k, i := c.head, c.hi
	for n := c.popped; n < c.pub; n++ {
		if i == chunkFrames {
			k, i = k.next, 0
		}
		if n >= t.frames {
			visit(&k.f[i])
		}
		i++
	}
	t.frames = c.pub
	for j := range c.lateQ {
		if c.lateQ[j].ord&^(1<<63) >= t.late {
			visit(&c.lateQ[j].f)
		}
	}
	t.late = c.lateN
}

// Missed is the number of frames that were gone before Read came.
func (t *Tap) Missed() uint64 { return t.missed }
