package natsbus

import (
	"fmt"
	"os"
)

// retention keeps the batches sent to one destination until a checkpoint that
// no longer needs them is committed. In memory up to a limit, then in a file
// that is never synced: it only has to outlive memory, not the machine.
type retention struct {
	base    uint64 // ordinal of kept[0]
	kept    []kept
	chunk   []byte
	bytes   int // in memory
	limit   int
	dir     string
	file    *os.File
	end     int64
	spilled int // kept[:spilled] are in the file
}

type kept struct {
	b    []byte // nil when spilled
	off  int64
	size uint32
	hash Hash
}

const chunkBytes = 256 << 10

// add appends batch n, which must follow the last one, and returns the kept
// copy. A batch that is there already (a re-execution) is not added.
func (r *retention) add(n uint64, content []byte, h Hash) error {
	if len(r.kept) == 0 {
		r.base = n
	}
	if n != r.base+uint64(len(r.kept)) {
		return fmt.Errorf("natsbus: batch %d does not follow batch %d", n, r.base+uint64(len(r.kept))-1)
	}
	if len(content) > cap(r.chunk)-len(r.chunk) {
		r.chunk = make([]byte, 0, max(chunkBytes, len(content)))
	}
	at := len(r.chunk)
	r.chunk = append(r.chunk, content...)
	r.kept = append(r.kept, kept{b: r.chunk[at:len(r.chunk):len(r.chunk)], size: uint32(len(content)), hash: h})
	r.bytes += len(content)
	for r.bytes > r.limit && r.dir != "" {
		if err := r.spill(); err != nil {
			return err
		}
	}
	if r.bytes > r.limit {
		return fmt.Errorf("natsbus: %d bytes of batches are retained, limit %d: no checkpoint was committed since window %d", r.bytes, r.limit, r.base)
	}
	return nil
}

// spill moves the older half of what is in memory to the file.
func (r *retention) spill() error {
	if r.file == nil {
		f, err := os.CreateTemp(r.dir, "batches-*")
		if err != nil {
			return fmt.Errorf("natsbus: retained batches: %w", err)
		}
		os.Remove(f.Name()) // it goes with the process, whatever its end
		r.file = f
	}
	var buf []byte
	first, goal := r.end, r.bytes/2
	for i := r.spilled; i < len(r.kept) && r.bytes > goal; i++ {
		k := &r.kept[i]
		k.off = r.end
		buf = append(buf, k.b...)
		r.end += int64(len(k.b))
		r.bytes -= len(k.b)
		k.b = nil
		r.spilled = i + 1
	}
	if _, err := r.file.WriteAt(buf, first); err != nil {
		return fmt.Errorf("natsbus: retained batches: %w", err)
	}
	return nil
}

// get returns batch n; ok is false when it is not there.
func (r *retention) get(n uint64) (b []byte, h Hash, ok bool) {
	if n < r.base || n >= r.base+uint64(len(r.kept)) {
		return nil, Hash{}, false
	}
	k := &r.kept[n-r.base]
	if int(n-r.base) >= r.spilled {
		return k.b, k.hash, true
	}
	b = make([]byte, k.size)
	if _, err := r.file.ReadAt(b, k.off); err != nil {
		return nil, Hash{}, false
	}
	return b, k.hash, true
}

// drop forgets batches up to and including n.
func (r *retention) drop(n uint64) {
	if n < r.base || len(r.kept) == 0 {
		return
	}
	k := min(int(n-r.base)+1, len(r.kept))
	for i := range k {
		r.bytes -= len(r.kept[i].b)
	}
	r.kept = append([]kept(nil), r.kept[k:]...)
	r.base += uint64(k)
	r.spilled = max(0, r.spilled-k)
	if r.spilled == 0 {
		r.end = 0
	}
}

func (r *retention) close() {
	if r.file != nil {
		r.file.Close()
	}
	*r = retention{}
}
