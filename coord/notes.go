package coord

import (
	"context"
	"errors"
	"sync"
	"time"
)

// notes is a slot's log of what was noted, on its way into blobs: cut at each
// checkpoint, so that what a restored slot notes again is never there twice.
type notes struct {
	mu    sync.Mutex
	parts []notePart
	cuts  int

	storing sync.Mutex
	done    int // cut that was stored last
}

// notePart is a stretch of the log that ends at a cut.
type notePart struct {
	cut  int
	size int
	data []byte // until it is stored
	sum  string
}

// maxNotePart bounds a blob that parts are joined into.
const maxNotePart = 64 << 20

// begin continues a log that is stored already.
func (l *notes) begin(sums []string) {
	for _, s := range sums {
		l.parts = append(l.parts, notePart{sum: s, size: maxNotePart})
	}
}

// cut ends a stretch and returns its number. The engine's goroutine calls it.
func (l *notes) cut(b []byte) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cuts++
	if len(b) > 0 {
		l.parts = append(l.parts, notePart{cut: l.cuts, size: len(b), data: b})
	}
	return l.cuts
}

var errPassed = errors.New("a later checkpoint is stored already")

// store puts everything up to a cut into blobs and returns their sums. Small
// neighbours are joined, so that an hour of checkpoints has a handful.
func (l *notes) store(ctx context.Context, blobs Blobs, cut int) ([]string, error) {
	l.storing.Lock() // only storing changes what lies before a cut
	defer l.storing.Unlock()
	if cut < l.done {
		return nil, errPassed
	}
	l.mu.Lock()
	n := 0
	for n < len(l.parts) && l.parts[n].cut <= cut {
		n++
	}
	head := append([]notePart(nil), l.parts[:n]...)
	l.mu.Unlock()
	head = join(ctx, blobs, head)
	var sums []string
	for i := range head {
		p := &head[i]
		if p.sum == "" {
			s, err := storeBlob(ctx, blobs, p.data, 2*time.Minute)
			if err != nil {
				return nil, err
			}
			p.sum, p.data = s, nil
		}
		sums = append(sums, p.sum)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parts = append(head, l.parts[n:]...)
	l.done = cut
	return sums, nil
}

// join makes one part of the last two while they are of like size.
func join(ctx context.Context, blobs Blobs, head []notePart) []notePart {
	for len(head) > 1 {
		a, b := &head[len(head)-2], &head[len(head)-1]
		if b.data == nil || a.size > 2*b.size || a.size+b.size > maxNotePart {
			break
		}
		x := a.data
		if x == nil {
			var err error
			if x, err = blobs.Get(ctx, a.sum); err != nil {
				break // it stays as it is
			}
		}
		x = append(x[:len(x):len(x)], b.data...)
		*a = notePart{cut: b.cut, size: len(x), data: x}
		head = head[:len(head)-1]
	}
	return head
}

// stored lists what is in blobs by now.
func (l *notes) stored() (sums []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.parts {
		if l.parts[i].sum == "" {
			break
		}
		sums = append(sums, l.parts[i].sum)
	}
	return sums
}
