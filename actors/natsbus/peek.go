package natsbus

import "fmt"

// Peeked is what a message between processes says, for traces and tests.
type Peeked struct {
	Kind     string // batch, nak or gone
	Src, Dst int
	N        uint64 // window; of a NAK the first one
	To       uint64 // of a NAK the last one
	Hash     Hash   // of a batch's whole content
	Body     []byte
}

// Peek reads a message of the run with this key.
func Peek(b []byte, run uint64, procs int) (p Peeked, err error) {
	h, body, err := parseHeader(b, run, procs)
	if err != nil {
		return p, err
	}
	p = Peeked{Kind: "batch", Src: int(h.src), Dst: int(h.dst), N: h.n, To: h.n, Hash: h.hash, Body: body}
	switch h.kind {
	case kindNak:
		p.Kind, p.To = "nak", h.head
	case kindGone:
		p.Kind = "gone"
	}
	return p, nil
}

func (p Peeked) String() string {
	switch p.Kind {
	case "nak":
		return fmt.Sprintf("nak %d->%d %d..%d", p.Src, p.Dst, p.N, p.To)
	case "gone":
		return fmt.Sprintf("gone %d->%d %d", p.Src, p.Dst, p.N)
	}
	return fmt.Sprintf("batch %d->%d %d %08x", p.Src, p.Dst, p.N, uint32(p.Hash.Hi))
}
