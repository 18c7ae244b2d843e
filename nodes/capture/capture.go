// Package capture writes pcapng: real bytes of frames, one interface a port,
// timestamps in nanoseconds of virtual time (epoch 0 = the run's start, rounded
// down), comments on drops and pauses. Not in picoseconds: Wireshark multiplies
// the part of a second by 10^9 in 64 bits, which wraps from 18.4 ms on.
// It writes the blocks itself: speed, FCS length, ring; pcapgo reads the result.
// Start at [New].
package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// Options bound a capture.
type Options struct {
	// MaxBytes is the most the packets may take, block headers included;
	// 0 = no limit. Without Ring the first ones are kept and the rest counted
	// as skipped; with Ring the last ones are kept, in memory until Close.
	MaxBytes int64
	Ring     bool
	App      string // name of the writing program in the section header
}

// Dir is the direction of a packet at its port.
type Dir uint8

// Directions, as pcapng numbers them (epb_flags).
const (
	DirUnknown Dir = iota
	DirIn
	DirOut
)

// Writer writes one file. It is for one goroutine.
type Writer struct {
	w       io.Writer
	o       Options
	ports   map[string]int
	buf     []byte // the block being built
	frame   []byte // the frame being encoded
	ring    []span // packet blocks, oldest first, with Options.Ring
	mem     []byte // circular store of MaxBytes
	head    int    // where the next ring block goes
	used    int64
	skipped uint64
	closed  bool
}

// span is where a block lies in the ring; it never wraps.
type span struct{ off, n int }

// Errors of a writer.
var (
	ErrClosed = errors.New("capture: writer is closed")
	ErrPort   = errors.New("capture: unknown port")
)

const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockPacket    = 6
	byteOrderMagic = 0x1a2b3c4d
	optEnd         = 0
	optComment     = 1
	optUserAppl    = 4 // section
	optIfName      = 2
	optIfSpeed     = 8
	optIfTsresol   = 9
	optIfFcslen    = 13
	optEpbFlags    = 2
	linkEthernet   = 1
	nanoseconds    = 9 // if_tsresol: units of 10^-9 s
)

// New writes the section header to w.
func New(w io.Writer, o Options) (*Writer, error) {
	if o.Ring && o.MaxBytes <= 0 {
		return nil, fmt.Errorf("capture: MaxBytes is %d, allowed with Ring: 1 or more", o.MaxBytes)
	}
	c := &Writer{w: w, o: o, ports: map[string]int{}}
	if o.Ring {
		c.mem = make([]byte, o.MaxBytes)
	}
	c.begin(blockSection)
	c.buf = binary.LittleEndian.AppendUint32(c.buf, byteOrderMagic)
	c.buf = binary.LittleEndian.AppendUint32(c.buf, 1) // version 1.0
	c.buf = binary.LittleEndian.AppendUint64(c.buf, ^uint64(0))
	if o.App != "" {
		c.option(optUserAppl, []byte(o.App))
		c.option(optEnd, nil)
	}
	return c, c.flush(c.end())
}

// Port returns the interface of a port, named device:port; the first call of a
// name adds it, with the speed in bits per second (0 = not said). Frames carry
// their FCS, which the interface says.
func (c *Writer) Port(device, port string, speed clock.Rate) (int, error) {
	name := device + ":" + port
	if id, ok := c.ports[name]; ok {
		return id, nil
	}
	if c.closed {
		return 0, ErrClosed
	}
	id := len(c.ports)
	c.begin(blockInterface)
	c.buf = binary.LittleEndian.AppendUint16(c.buf, linkEthernet)
	c.buf = binary.LittleEndian.AppendUint16(c.buf, 0)
	c.buf = binary.LittleEndian.AppendUint32(c.buf, 0) // no snap length
	c.option(optIfName, []byte(name))
	if speed > 0 {
		c.option(optIfSpeed, binary.LittleEndian.AppendUint64(nil, uint64(speed)))
	}
	c.option(optIfTsresol, []byte{nanoseconds})
	c.option(optIfFcslen, []byte{wire.FCSSize})
	c.option(optEnd, nil)
	c.ports[name] = id
	return id, c.flush(c.end())
}

// Frame captures a frame at an instant; ctx as for wire.AppendFrame. The
// comment says what happened to it: "dropped: mtu", "pause: priority 3".
func (c *Writer) Frame(id int, at clock.Time, dir Dir, f *wire.Frame, ctx wire.FrameContext, comment string) error {
	c.frame = wire.AppendFrame(c.frame[:0], f, ctx)
	return c.Packet(id, at, dir, c.frame, comment)
}

// Packet captures bytes, destination MAC through FCS.
func (c *Writer) Packet(id int, at clock.Time, dir Dir, b []byte, comment string) error {
	switch {
	case c.closed:
		return ErrClosed
	case id < 0 || id >= len(c.ports):
		return fmt.Errorf("%w: id is %d, allowed: below %d", ErrPort, id, len(c.ports))
	case at < 0 || at == clock.Never:
		return fmt.Errorf("capture: time is %v, allowed: 0 or later", at)
	case len(comment) > 0xffff:
		comment = comment[:0xffff]
	}
	c.begin(blockPacket)
	c.buf = binary.LittleEndian.AppendUint32(c.buf, uint32(id))
	ns := uint64(at) / uint64(clock.Nanosecond)
	c.buf = binary.LittleEndian.AppendUint32(c.buf, uint32(ns>>32))
	c.buf = binary.LittleEndian.AppendUint32(c.buf, uint32(ns))
	c.buf = binary.LittleEndian.AppendUint32(c.buf, uint32(len(b)))
	c.buf = binary.LittleEndian.AppendUint32(c.buf, uint32(len(b)))
	c.buf = append(c.buf, b...)
	c.align()
	if comment != "" {
		c.option(optComment, []byte(comment))
	}
	if dir != DirUnknown {
		c.option(optEpbFlags, []byte{byte(dir), 0, 0, 0})
	}
	if comment != "" || dir != DirUnknown {
		c.option(optEnd, nil)
	}
	return c.keep(c.end())
}

// keep puts a packet block where the options say.
func (c *Writer) keep(block []byte) error {
	n := int64(len(block))
	switch {
	case c.o.Ring:
		c.store(block)
		return nil
	case c.o.MaxBytes > 0 && (c.skipped > 0 || c.used+n > c.o.MaxBytes):
		c.skipped++
		return nil
	}
	c.used += n
	return c.flush(block)
}

// store puts a block into the ring, over the oldest ones.
func (c *Writer) store(block []byte) {
	n := len(block)
	if n > len(c.mem) {
		c.skipped++
		return
	}
	if c.head+n > len(c.mem) {
		c.evict(c.head, len(c.mem))
		c.head = 0
	}
	c.evict(c.head, c.head+n)
	copy(c.mem[c.head:], block)
	c.ring = append(c.ring, span{c.head, n})
	c.head += n
}

// evict forgets the oldest blocks that touch [lo, hi).
func (c *Writer) evict(lo, hi int) {
	k := 0
	for k < len(c.ring) && c.ring[k].off < hi && c.ring[k].off+c.ring[k].n > lo {
		k++
	}
	if k > 0 {
		c.skipped += uint64(k)
		c.ring = c.ring[k:]
	}
}

// Skipped is the number of packets that MaxBytes left out.
func (c *Writer) Skipped() uint64 { return c.skipped }

// Close writes the ring out. It does not close the underlying writer.
func (c *Writer) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	for _, s := range c.ring {
		if err := c.flush(c.mem[s.off : s.off+s.n]); err != nil {
			return err
		}
	}
	return nil
}

// begin starts a block in buf; end closes it and returns its bytes.
func (c *Writer) begin(kind uint32) {
	c.buf = binary.LittleEndian.AppendUint32(c.buf[:0], kind)
	c.buf = binary.LittleEndian.AppendUint32(c.buf, 0)
}

func (c *Writer) end() []byte {
	n := uint32(len(c.buf) + 4)
	binary.LittleEndian.PutUint32(c.buf[4:], n)
	c.buf = binary.LittleEndian.AppendUint32(c.buf, n)
	return c.buf
}

func (c *Writer) align() {
	for len(c.buf)&3 != 0 {
		c.buf = append(c.buf, 0)
	}
}

func (c *Writer) option(code uint16, v []byte) {
	c.buf = binary.LittleEndian.AppendUint16(c.buf, code)
	c.buf = binary.LittleEndian.AppendUint16(c.buf, uint16(len(v)))
	c.buf = append(c.buf, v...)
	c.align()
}

func (c *Writer) flush(b []byte) error {
	if _, err := c.w.Write(b); err != nil {
		return fmt.Errorf("capture: write: %w", err)
	}
	return nil
}
