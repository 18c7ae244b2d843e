package actors

import (
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// In a round that nobody looks into, a tap keeps the first frames up to its
// limit and counts the rest; read, it has room again.
func TestTapKeepsSoMany(t *testing.T) {
	const more = 5
	c := newChannel(1, 0, 1, 1, 1)
	x, second := &Tap{c: c}, &Tap{c: c}
	x.next, c.tap, c.extra = second, x, true
	var pool chunks
	at := clock.Time(0)
	pass := func() { // published, and taken by its receiver before anybody reads
		c.push(&wire.Frame{At: at}, &pool)
		c.publish()
		c.front()
		c.pop()
		c.tidy(&pool, false)
		at++
	}
	read := func(x *Tap) (n int) {
		first := at
		x.Read(func(f *wire.Frame) {
			if first = min(first, f.At); f.At != first.Add(clock.Duration(n)) {
				t.Fatalf("frame %d is that of %v, the first one of %v", n, f.At, first)
			}
			n++
		})
		return n
	}
	for range mostKept {
		pass()
	}
	if n := read(second); n != mostKept || second.Missed() != 0 {
		t.Errorf("%d frames of %d, %d missed", n, mostKept, second.Missed())
	}
	for range more {
		pass()
	}
	if n := read(x); n != mostKept || x.Missed() != more {
		t.Errorf("%d frames and %d missed, want %d and %d", n, x.Missed(), mostKept, more)
	}
	if n := read(second); n != more || second.Missed() != 0 {
		t.Errorf("a tap that was read has %d frames more, %d missed", n, second.Missed())
	}
	pass()
	if n := read(x); n != 1 || x.Missed() != more {
		t.Errorf("then %d frames and %d missed", n, x.Missed())
	}
}
