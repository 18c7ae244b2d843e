package chain

import (
	"encoding/binary"
	"fmt"

	"github.com/rocemu/rocemu/clock"
)

// Salts keep the two halves of a trace id and span ids apart.
const (
	saltHi   = 0x74726163652d6869
	saltLo   = 0x74726163652d6c6f
	saltSpan = 0x7370616e2d696420
)

// traceID derives a chain's id from the run, the requester, the queue pair and
// the first packet concerned; equal runs give equal ids.
func traceID(d *Directory, c *Chain) (id [16]byte) {
	hash, seed := d.Run()
	run := clock.Mix(seed, binary.LittleEndian.Uint64(hash[:8]), binary.LittleEndian.Uint64(hash[8:16]))
	q := d.QP(c.Conn)
	// A requester has its own numbers for its queue pairs; those of its peers
	// may be equal.
	who := clock.Mix(clock.HashString(run, d.RNIC(q.A)), uint64(q.AQPN), clock.HashString(run, d.RNIC(q.B)))
	what := uint64(q.BQPN)<<32 | uint64(c.PSN)
	hi := clock.Mix(who^saltHi, what, uint64(c.Ordinal))
	lo := clock.Mix(who^saltLo, what, uint64(c.Ordinal))
	binary.BigEndian.PutUint64(id[:8], hi)
	binary.BigEndian.PutUint64(id[8:], lo|1) // an all-zero id is not valid
	return id
}

// SpanID returns the id of step i, or of the request itself with i = -1.
func (c *Chain) SpanID(i int) (id [8]byte) {
	hi, lo := binary.BigEndian.Uint64(c.Trace[:8]), binary.BigEndian.Uint64(c.Trace[8:])
	if i >= 0 {
		s := &c.Steps[i]
		// A record is named by its device and number there.
		hi = clock.Mix(hi, uint64(s.Dev)+1, uint64(s.Seq))
	}
	x := clock.Mix(saltSpan, hi, lo)
	if x == 0 {
		x = 1
	}
	binary.BigEndian.PutUint64(id[:], x)
	return id
}

// singleFlow is the name of one flow of a workload line that has several.
func singleFlow(line, from, to string, n int32) string {
	return fmt.Sprintf("%s[%s>%s#%d]", line, from, to, n)
}
