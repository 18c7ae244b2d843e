package topology

import (
	"fmt"

	"github.com/rocemu/rocemu/clock"
)

// Headroom by the rules that vendors and standards publish (switch §2.1, §2.4),
// to set beside the emulator's own.

// ieeeQuanta is the bound on a peer's receive-to-stop time in 512-bit quanta by
// rate in Gbps (IEEE 802.3 31B.3.7).
var ieeeQuanta = map[int64]int64{10: 60, 25: 80, 40: 118, 50: 147, 100: 394, 200: 453, 400: 905, 800: 905}

// IEEEQuanta returns the receive-to-stop bound of a rate in quanta.
func IEEEQuanta(rate clock.Rate) (int64, error) {
	if q, ok := ieeeQuanta[int64(rate/clock.Gbps)]; ok && rate%clock.Gbps == 0 {
		return q, nil
	}
	return 0, fmt.Errorf("rate %v: no quanta are published; allowed: 10, 25, 40, 50, 100, 200, 400, 800 Gbps", rate)
}

// HeadroomIEEE is article-408's structure with the standard's stop time: a
// frame of mtu ahead, the PFC frame, two cables and the quanta of the rate.
func HeadroomIEEE(rate clock.Rate, prop clock.Duration, mtu int, cell int64, packet int) (Headroom, error) {
	q, err := IEEEQuanta(rate)
	if err != nil {
		return Headroom{}, err
	}
	stop := rate.Span(q * 64)
	h := Headroom{Terms: []Term{
		{Name: fmt.Sprintf("frame of %d B ahead of the PFC frame", mtu), Span: rate.Span(int64(mtu + overhead))},
		{Name: "PFC frame", Span: rate.Span(pfcFrame)},
		{Name: "cable, PFC frame", Span: prop},
		{Name: fmt.Sprintf("peer stops, %d quanta", q), Span: stop},
		{Name: "cable, data", Span: prop},
	}}
	if packet == 0 {
		packet = minFrame
	}
	h.Packet, h.InFlight, h.Span = inFlight(rate, int64(mtu+overhead+pfcFrame)+q*64, 2*prop, cell, packet)
	h.Cells, h.Bytes = h.InFlight, h.InFlight*cell
	h.Terms = append(h.Terms, Term{Name: "in flight", Cells: h.InFlight})
	return h, nil
}

// NVIDIAInput is one port for the Spectrum formula.
type NVIDIAInput struct {
	Rate         clock.Rate
	LengthM      int64
	PortMTU      int64 // 9100
	RDMAMTU      int64 // 1024
	SmallPercent int64 // share of 64 B packets, by count
	Cell         int64 // 96, 144 or 192
	Lanes        int   // 8 doubles the pipeline
	OnTile       bool  // Spectrum-4 and later
}

// NVIDIAHeadroom is the result in bytes.
type NVIDIAHeadroom struct{ XON, XOFF, Size int64 }

// HeadroomNVIDIA is the public SONiC formula for Spectrum: xoff = rdma_mtu +
// prop · occupancy, xon = 19 KiB of pipeline, all rounded up to 1 KiB. Light
// travels 198000 km/s in it.
func HeadroomNVIDIA(in NVIDIAInput) (NVIDIAHeadroom, error) {
	q, err := IEEEQuanta(in.Rate)
	if err != nil {
		return NVIDIAHeadroom{}, err
	}
	const macPHY, gearbox, pipeline = 819, 0, 19 * 1024 // 0.8 KiB
	mbps := int64(in.Rate / clock.Mbps)
	// Bytes on one cable: length / (198000 km/s) · rate / 8.
	cable := in.LengthM * mbps * 1000 / 198000 / 8
	prop := in.PortMTU + 2*cable + 2*gearbox + macPHY + q*64
	if in.OnTile {
		prop += 120 * mbps / 8000
	}
	w := ceilDiv(2*in.Cell, 1+in.Cell)
	if in.Cell > 128 {
		w = ceilDiv(in.Cell, 64)
	}
	// occupancy = (100 - s + s·w)/100, s = 100 · 64 / mean packet size.
	p := in.SmallPercent
	avg := p*64 + (100-p)*in.RDMAMTU // mean size × 100
	occNum, occDen := avg+6400*(w-1), avg
	k := func(n int64) int64 { return ceilDiv(n, 1024) * 1024 }
	h := NVIDIAHeadroom{XON: pipeline, XOFF: k(in.RDMAMTU + prop*occNum/occDen)}
	if in.Lanes >= 8 {
		h.XON *= 2
	}
	h.Size = h.XON + h.XOFF
	if in.Lanes >= 8 {
		h.Size = k(h.Size + in.PortMTU)
	}
	return h, nil
}

// HeadroomMLX5 is the xoff rule of the mlx5 port buffer, in bytes; below
// 40 Gb/s it counts as 40.
func HeadroomMLX5(rate clock.Rate, lengthM, mtu int64) int64 {
	g := max(int64(rate/clock.Gbps), 40)
	return (301+216*lengthM/100)*g + 272*mtu/100
}
