package sim

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
)

// partsGrab is how many devices one thread asks at once.
const partsGrab = 64

// Parts collects what every hosted device has to say, by as many threads as the
// engine has workers.
func (f *Fabric) Parts(end clock.Time) []*report.Part {
	local := f.Engine.Local()
	out := make([]*report.Part, len(local))
	var next atomic.Int64
	ask := func() {
		for {
			i := int(next.Add(partsGrab)) - partsGrab
			if i >= len(local) {
				return
			}
			for k, d := range local[i:min(i+partsGrab, len(local))] {
				out[i+k] = f.part(d, end)
			}
		}
	}
	var wg sync.WaitGroup
	for range min(f.Engine.Workers(), (len(local)+partsGrab-1)/partsGrab) - 1 {
		wg.Go(ask)
	}
	ask()
	wg.Wait()
	return out
}

// part is what one device has to say. It reads that device alone.
func (f *Fabric) part(d int32, end clock.Time) *report.Part {
	p := &report.Part{Device: f.Plan.Devices[d].Name}
	f.Nodes[d].Fill(p, end)
	if !f.asked {
		p.Findings = slices.DeleteFunc(p.Findings, func(x report.Finding) bool { return x.Code == report.CodeRecordsLost })
	}
	for k := range p.Links {
		fr, by := f.Engine.InFlight(d, p.Links[k].Port)
		p.Links[k].InFlight = report.Count{Frames: fr, Bytes: by}
	}
	f.Nodes[d].FaultStatus(func(index int32, hits uint64, started bool, end clock.Time) {
		if started && int(index) < len(f.Plan.Faults) && index >= 0 {
			p.Faults = append(p.Faults, report.FaultPart{Name: f.Plan.Faults[index].Name, Hits: hits, End: end})
		}
	})
	c := f.Nodes[d].Chain()
	p.DigestHi, p.DigestLo = c.Hi, c.Lo
	st := f.Engine.Status(d)
	p.FrameHops, p.Events = st.Hops, st.Events
	return p
}
