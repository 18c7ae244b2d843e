package sim

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/capture"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

// Captures writes what passes ports to pcapng files: both directions, each
// frame stamped with the instant its last bit passes the port. A frame that the
// port's device dropped says so in a comment, a PFC frame what it pauses.
type Captures struct {
	plan    *topology.Plan
	batches *Sampler // those of the records
	ports   []*capPort
	files   map[string]*capFile
	lost    map[frameKey]record.Reason
	lag     clock.Duration // from a frame's last bit to the record of its loss
	err     error
}

// capFile is one output; several ports may share it.
type capFile struct {
	w    *capture.Writer
	buf  *bufio.Writer
	c    io.WriteCloser
	held []held
}

// capPort is one direction of a captured port.
type capPort struct {
	file *capFile
	id   int
	dev  int32
	dir  capture.Dir
	tap  *actors.Tap
	from *topology.Port // the sending port
	dev0 int32          // and its device
}

// held is a frame that waits for its turn in the file.
type held struct {
	at  clock.Time
	ord int
	p   *capPort
	f   wire.Frame
}

// frameKey names a frame at one device.
type frameKey struct {
	dev                int32
	src, dst, qpn, psn uint32
	op, iter           uint8
}

// NewCaptures opens the files of a list of ports; open creates one by name.
func NewCaptures(f *Fabric, list []topology.Capture, open func(string) (io.WriteCloser, error)) (*Captures, error) {
	c := &Captures{plan: f.Plan, batches: Batches(f.Plan), files: map[string]*capFile{}, lost: map[frameKey]record.Reason{}}
	for _, want := range list {
		d := &f.Plan.Devices[want.Dev]
		if want.Port < 1 || want.Port > len(d.Ports) {
			return nil, errors.Join(fmt.Errorf("capture %s:%d: the ports are 1 to %d", d.Name, want.Port, len(d.Ports)), c.Close())
		}
		file, err := c.file(want.File, open)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("capture %s:%d: %w", d.Name, want.Port, err), c.Close())
		}
		p := &d.Ports[want.Port-1]
		id, err := file.w.Port(d.Name, strconv.Itoa(want.Port), p.Rate)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		far := &f.Plan.Devices[p.Peer].Ports[p.PeerPort-1]
		c.ports = append(c.ports,
			&capPort{file, id, want.Dev, capture.DirOut, f.Engine.TapTo(p.Peer, p.PeerPort), p, want.Dev},
			&capPort{file, id, want.Dev, capture.DirIn, f.Engine.TapTo(want.Dev, want.Port), far, p.Peer})
		c.lag = max(c.lag, p.IngressHalf+p.Rate.Span(1<<16)+clock.Microsecond)
	}
	return c, nil
}

func (c *Captures) file(name string, open func(string) (io.WriteCloser, error)) (*capFile, error) {
	if f := c.files[name]; f != nil {
		return f, nil
	}
	w, err := open(name)
	if err != nil {
		return nil, err
	}
	f := &capFile{c: w, buf: bufio.NewWriterSize(w, 1<<16)}
	if f.w, err = capture.New(f.buf, capture.Options{App: "rocemu"}); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	c.files[name] = f
	return f, nil
}

// Records remembers which frames were lost, for their comments.
func (c *Captures) Records(batch []record.Record) {
	for i := range batch {
		r := &batch[i]
		if r.Kind == record.Drop && slices.ContainsFunc(c.ports, func(p *capPort) bool { return p.dev == r.Dev }) {
			c.lost[frameKey{r.Dev, r.Src, r.Dst, r.QPN, r.PSN, r.Op, r.Iter}] = record.Reason(r.Reason)
		}
	}
}

// Between reads the taps and, every so often, writes what is final.
func (c *Captures) Between(start clock.Time, n uint64) {
	for _, p := range c.ports {
		p.read()
	}
	if _, ok := c.batches.Due(start); ok { // so losses are known
		c.flush(start.Add(-c.lag))
	}
}

// read takes the frames of one direction.
func (p *capPort) read() {
	p.tap.Read(func(f *wire.Frame) {
		p.file.held = append(p.file.held, held{p.passes(f), len(p.file.held), p, *f})
	})
}

// passes returns when the last bit of f passes the captured port, from its
// arrival at the receiver's state (see nodes/port).
func (p *capPort) passes(f *wire.Frame) clock.Time {
	s := p.from
	at := f.At
	switch {
	case f.Kind == wire.KindPFC || f.Kind == wire.KindPause:
		at = at.Add(s.PeerEgressHalf - s.PeerResponse)
	case s.PeerCutThrough:
		at = at.Add(s.Rate.Span(int64(f.Len)+wire.Overhead) - s.Rate.Span(64) - s.PeerIngressHalf)
	default:
		at = at.Add(-s.PeerIngressHalf)
	}
	if p.dir == capture.DirOut {
		at = at.Add(-s.Prop)
	}
	return at
}

// flush writes the held frames that passed before t, in order of time.
func (c *Captures) flush(t clock.Time) {
	for _, f := range c.files {
		slices.SortFunc(f.held, func(a, b held) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.ord, b.ord)) })
		n := 0
		for n < len(f.held) && f.held[n].at < t {
			if c.err == nil {
				c.err = c.write(&f.held[n])
			}
			n++
		}
		f.held = append(f.held[:0], f.held[n:]...)
		for i := range f.held {
			f.held[i].ord = i
		}
	}
}

func (c *Captures) write(h *held) error {
	p, f := h.p, &h.f
	comment := ""
	switch {
	case f.Kind == wire.KindPFC:
		comment = pauses(f)
	case p.dir == capture.DirIn:
		k := frameKey{p.dev, f.Src, f.Dst, f.DstQPN(), uint32(f.PSN()), uint8(f.Op()), f.Iter}
		if why, ok := c.lost[k]; ok {
			delete(c.lost, k)
			comment = "dropped: " + why.String()
		}
	}
	if f.Iter > 1 && f.Kind == wire.KindData {
		comment += fmt.Sprintf(" transmission %d", f.Iter)
	}
	return p.file.w.Frame(p.id, h.at, p.dir, f, wire.FrameContext{
		SrcMAC: portMAC(c.plan, p.dev0, p.from.Num), DstMAC: portMAC(c.plan, p.from.Peer, p.from.PeerPort),
	}, strings.TrimSpace(comment))
}

// pauses says what a PFC frame does.
func pauses(f *wire.Frame) (text string) {
	for prio := range 8 {
		if f.D&(1<<prio) == 0 {
			continue
		}
		if q := f.PFCTime(prio); q > 0 {
			text += fmt.Sprintf("pause: priority %d for %d quanta ", prio, q)
		} else {
			text += fmt.Sprintf("resume: priority %d ", prio)
		}
	}
	return text
}

// portMAC is the address of a port: a switch routes, so each leg of a frame's
// way has those of its two ends.
func portMAC(plan *topology.Plan, dev int32, port int) wire.MAC {
	if d := &plan.Devices[dev]; d.Kind == topology.RNIC && port == 1 {
		return wire.RNICMAC(uint32(d.Num))
	}
	return wire.PortMAC(uint32(dev), uint32(port))
}

// Close writes what is left and closes the files. It returns the first error
// of the whole capture.
func (c *Captures) Close() error {
	for _, p := range c.ports {
		p.read()
	}
	c.flush(clock.Never)
	err := c.err
	for _, name := range sortedNames(c.files) {
		f := c.files[name]
		err = errors.Join(err, f.w.Close(), f.buf.Flush(), f.c.Close())
	}
	c.files = nil
	return err
}

func sortedNames(m map[string]*capFile) []string {
	var out []string
	for n := range m {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}
