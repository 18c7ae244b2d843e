package natsbus

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A message is a header of 64 bytes and a piece of a batch.
//
//	0  magic "REB1"   4  kind   5  0   6  source  8  destination
//	10 part  12 parts  14 0  16 run key  24 window  32 head  40 content bytes  44 0
//	48 content hash (two words)
//
// Head is the latest window the source has produced a batch for; it is a hint
// and no part of the hash. A NAK has the first missing window in window and the
// last in head.
const (
	headerLen = 64
	magic     = 0x31424552
	// PartBytes is the most content one message carries: well under the
	// default payload limit of 1 MiB, and where NATS still is at its best.
	PartBytes = 256 << 10
	// MaxContent bounds one batch: two million frames in one window.
	MaxContent = 32 << 20
	minPart    = 1024
)

// Message kinds.
const (
	kindBatch = 1
	kindNak   = 2
	kindGone  = 3 // the asked window was collected: this incarnation cannot repair the gap
)

type header struct {
	kind        uint8
	src, dst    uint16
	part, parts uint16
	run         uint64
	n, head     uint64
	total       uint32
	hash        Hash
}

func (h *header) put(b []byte) []byte {
	var x [headerLen]byte
	le := binary.LittleEndian
	le.PutUint32(x[0:], magic)
	x[4] = h.kind
	le.PutUint16(x[6:], h.src)
	le.PutUint16(x[8:], h.dst)
	le.PutUint16(x[10:], h.part)
	le.PutUint16(x[12:], h.parts)
	le.PutUint64(x[16:], h.run)
	le.PutUint64(x[24:], h.n)
	le.PutUint64(x[32:], h.head)
	le.PutUint32(x[40:], h.total)
	le.PutUint64(x[48:], h.hash.Hi)
	le.PutUint64(x[56:], h.hash.Lo)
	return append(b, x[:]...)
}

var (
	errHeader = errors.New("natsbus: malformed message")
	errRun    = errors.New("natsbus: message of another run, build or topology")
)

func parseHeader(b []byte, run uint64, peers int) (h header, body []byte, err error) {
	if len(b) < headerLen {
		return h, nil, fmt.Errorf("%w: %d bytes", errHeader, len(b))
	}
	le := binary.LittleEndian
	if le.Uint32(b) != magic || b[5] != 0 || le.Uint16(b[14:]) != 0 || le.Uint32(b[44:]) != 0 {
		return h, nil, fmt.Errorf("%w: not a batch of this version", errHeader)
	}
	h = header{
		kind: b[4], src: le.Uint16(b[6:]), dst: le.Uint16(b[8:]), part: le.Uint16(b[10:]), parts: le.Uint16(b[12:]),
		run: le.Uint64(b[16:]), n: le.Uint64(b[24:]), head: le.Uint64(b[32:]), total: le.Uint32(b[40:]),
		hash: Hash{le.Uint64(b[48:]), le.Uint64(b[56:])},
	}
	switch {
	case h.run != run:
		return h, nil, errRun
	case h.kind < kindBatch || h.kind > kindGone || int(h.src) >= peers || int(h.dst) >= peers:
		return h, nil, fmt.Errorf("%w: kind %d from %d to %d of %d", errHeader, h.kind, h.src, h.dst, peers)
	case h.parts == 0 || h.part >= h.parts || h.total > MaxContent || uint32(h.parts) > h.total/minPart+1:
		return h, nil, fmt.Errorf("%w: part %d of %d, %d bytes", errHeader, h.part, h.parts, h.total)
	}
	return h, b[headerLen:], nil
}

// assembly collects the parts of one batch.
type assembly struct {
	parts [][]byte
	got   int
	bytes int
	total uint32
	hash  Hash
	done  []byte // the whole content, when complete and checked
}

// add takes one part; it reports whether the batch is complete. A part that
// contradicts what is there restarts the assembly: at most one of the two can
// match its hash.
func (a *assembly) add(h *header, body []byte) (bool, error) {
	if a.parts == nil || a.total != h.total || a.hash != h.hash || len(a.parts) != int(h.parts) {
		*a = assembly{parts: make([][]byte, h.parts), total: h.total, hash: h.hash}
	}
	if a.parts[h.part] != nil {
		return false, nil
	}
	if a.bytes+len(body) > int(h.total) {
		*a = assembly{}
		return false, fmt.Errorf("%w: more content than the %d bytes announced", errHeader, h.total)
	}
	if body == nil {
		body = []byte{}
	}
	a.parts[h.part] = body
	a.got++
	a.bytes += len(body)
	if a.got < len(a.parts) {
		return false, nil
	}
	whole := a.parts[0]
	if len(a.parts) > 1 {
		whole = make([]byte, 0, a.bytes)
		for _, p := range a.parts {
			whole = append(whole, p...)
		}
	}
	if len(whole) != int(h.total) || HashOf(whole) != h.hash {
		*a = assembly{}
		return false, fmt.Errorf("%w: content does not match its hash", errHeader)
	}
	a.done, a.parts = whole, nil
	return true, nil
}
