package topology

import (
	"math/big"

	"github.com/rocemu/rocemu/clock"
)

// Headroom: what arrives at a priority group between its XOFF and the last bit
// of the last unwanted frame (switch §2.1; model-rules "headroom: auto"). All
// arithmetic is exact; results are whole cells.

const (
	overhead = 20 // preamble and inter-frame gap
	pfcFrame = 84 // a PFC frame on the wire with overhead
	minFrame = 64
)

// HeadroomInput is one direction of one cable, seen from the switch that sends
// XOFF.
type HeadroomInput struct {
	Rate     clock.Rate
	Prop     clock.Duration // cable, one way
	MTU      int            // largest frame of any class on the cable
	Response clock.Duration // peer: PFC frame's last bit to its last start
	Half     clock.Duration // own ingress half of the pipeline
	Cell     int64
	Packet   int // frame size in flight, 0 = the worst for the cell
}

// Term is one addend of a headroom, for people.
type Term struct {
	Name  string
	Span  clock.Duration // rounded up
	Cells int64          // 0 when the term is a time
}

// Headroom is a computed headroom with its terms.
type Headroom struct {
	Terms    []Term
	Span     clock.Duration // total, rounded up to a picosecond
	InFlight int64          // cells in flight at the worst packet size
	Raiser   int64          // cells of the frame that raises XOFF
	Reserve  int64          // cells added on top
	Cells    int64          // to configure
	Bytes    int64          // Cells × cell
	Packet   int            // worst packet size used
}

// HeadroomAuto is the rule behind "headroom: auto":
// ceil(1.05 · (ceil(T / slot of the worst packet) + ceil(mtu / cell))) with
// T = (mtu+20)·8/R + 84·8/R + 2·prop + response + half a pipeline.
func HeadroomAuto(in HeadroomInput) Headroom {
	h := Headroom{Terms: []Term{
		{Name: "frame ahead of the PFC frame", Span: in.Rate.Span(int64(in.MTU + overhead))},
		{Name: "PFC frame", Span: in.Rate.Span(pfcFrame)},
		{Name: "cable, PFC frame", Span: in.Prop},
		{Name: "peer's response", Span: in.Response},
		{Name: "cable, data", Span: in.Prop},
		{Name: "own ingress pipeline", Span: in.Half},
	}}
	wire := int64(in.MTU + overhead + pfcFrame)
	h.Packet, h.InFlight, h.Span = inFlight(in.Rate, wire, 2*in.Prop+in.Response+in.Half, in.Cell, in.Packet)
	h.Raiser = ceilDiv(int64(in.MTU), in.Cell)
	h.Cells = ceilDiv(105*(h.InFlight+h.Raiser), 100)
	h.Reserve = h.Cells - h.InFlight - h.Raiser
	h.Bytes = h.Cells * in.Cell
	h.Terms = append(h.Terms, Term{Name: "in flight", Cells: h.InFlight},
		Term{Name: "frame that raises XOFF", Cells: h.Raiser}, Term{Name: "reserve 5%", Cells: h.Reserve})
	return h
}

// Article408 is the article's figure taken apart (model-rules "article-408"):
// a frame ahead whose slot with the PFC frame fills one jumbo's 738.88 ns at
// 100G, 1000 ns stop, two cables, 64 B packets, no reserve, no raiser.
// packet 0 means 64 B.
func Article408(rate clock.Rate, prop clock.Duration, cell int64, packet int) Headroom {
	const ahead, stop = 9132, 1000 * clock.Nanosecond
	if packet == 0 {
		packet = minFrame
	}
	h := Headroom{Terms: []Term{
		{Name: "frame of 9132 B ahead of the PFC frame", Span: rate.Span(ahead + overhead)},
		{Name: "PFC frame", Span: rate.Span(pfcFrame)},
		{Name: "cable, PFC frame", Span: prop},
		{Name: "peer stops", Span: stop},
		{Name: "cable, data", Span: prop},
	}}
	h.Packet, h.InFlight, h.Span = inFlight(rate, ahead+overhead+pfcFrame, 2*prop+stop, cell, packet)
	h.Cells, h.Bytes = h.InFlight, h.InFlight*cell
	h.Terms = append(h.Terms, Term{Name: "in flight", Cells: h.InFlight})
	return h
}

// inFlight counts the cells that arrive at line rate in a time given as wire
// bytes plus a span. packet 0 means the worst size for the cell.
func inFlight(rate clock.Rate, wire int64, span clock.Duration, cell int64, packet int) (int, int64, clock.Duration) {
	if packet == 0 {
		packet = worstPacket(cell)
	}
	// T in bits × 1e12: wire·8·1e12 + span·rate; a slot is (packet+20)·8·1e12.
	ps := big.NewInt(1e12)
	t := new(big.Int).Mul(big.NewInt(8*wire), ps)
	t.Add(t, new(big.Int).Mul(big.NewInt(int64(span)), big.NewInt(int64(rate))))
	slot := new(big.Int).Mul(big.NewInt(int64(8*(packet+overhead))), ps)
	n := ceilBig(t, slot)
	return packet, n * ceilDiv(int64(packet), cell), clock.Duration(ceilBig(t, big.NewInt(int64(rate))))
}

// worstPacket is the frame size that fills most cells a wire byte: 64 B, or
// one byte over k cells where the cell is small (switch §2.2).
func worstPacket(cell int64) int {
	best, bestCells := int64(minFrame), ceilDiv(minFrame, cell)
	for k := int64(1); k*cell+1 <= 9216 && k < 64; k++ {
		l := max(k*cell+1, minFrame)
		c := ceilDiv(l, cell)
		if c*(best+overhead) > bestCells*(l+overhead) {
			best, bestCells = l, c
		}
	}
	return int(best)
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

func ceilBig(a, b *big.Int) int64 {
	q, m := new(big.Int).QuoRem(a, b, new(big.Int))
	if m.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	if !q.IsInt64() {
		return 1 << 62
	}
	return q.Int64()
}
