package sim

import (
	"fmt"
	"strconv"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/fabric"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// switchNode is a switch as a run sees it: the actor and its part of the
// result.
type switchNode struct {
	*fabric.Switch
	plan *topology.Plan
	dev  *topology.Device
}

// TakeRecords appends the notes made since the last call.
func (s *switchNode) TakeRecords(dst []record.Record) []record.Record {
	return append(dst, s.Switch.TakeRecords()...)
}

// Fill adds the switch's part of the result as of end. A device whose own
// account does not balance reports a finding that fails the run.
func (s *switchNode) Fill(p *report.Part, end clock.Time) {
	out := &report.SwitchCounters{Ports: map[string]*report.PortCounters{}, Pools: map[string]*report.PoolCounters{}}
	p.Switch = out
	for i, n := range s.Drops() {
		if i > 0 {
			p.Drops[i-1] = n
		}
	}
	for i := range s.dev.Ports {
		pp := &s.dev.Ports[i]
		c := s.Counters(pp.Num)
		out.Ports[strconv.Itoa(pp.Num)] = s.port(pp, c, end)
		heldOut, heldIn := s.Held(pp.Num)
		p.Links = append(p.Links, report.LinkCounts{
			Port: pp.Num, Sent: report.Count(c.Tx), Injected: report.Count(c.Injected), Lost: report.Count(c.Lost),
			Delivered: report.Count(c.Rx), RxDropped: report.Count(c.RxDropped), RxInjected: report.Count(c.RxInjected),
			HeldOut: report.Count(heldOut), HeldIn: report.Count(heldIn),
		})
		p.Balance.In.Frames, p.Balance.In.Bytes = p.Balance.In.Frames+c.Rx.Frames, p.Balance.In.Bytes+c.Rx.Bytes
		p.Balance.Out.Frames, p.Balance.Out.Bytes = p.Balance.Out.Frames+c.Tx.Frames, p.Balance.Out.Bytes+c.Tx.Bytes
	}
	p.Balance.Originated = report.Count(s.Copied())
	p.Balance.Dropped, p.Balance.Stored = report.Count(s.Dropped()), report.Count(s.Stored())
	shared, headroom := s.Memory().PoolMarks()
	out.Pools["ingress_lossless_pool"] = &report.PoolCounters{Watermark: shared}
	out.Pools["headroom"] = &report.PoolCounters{Watermark: headroom}
	if err := s.Check(); err != nil {
		p.Findings = append(p.Findings, report.Finding{Code: report.CodeInvariant, Where: s.dev.Name, Text: err.Error()})
	}
	if _, lost := s.Records(); lost > 0 {
		p.Findings = append(p.Findings, report.Finding{
			Code: report.CodeRecordsLost, Where: s.dev.Name,
			Text: fmt.Sprintf("%d exceptional records beyond the bound were not kept; counters are complete", lost),
		})
	}
}

// port maps one port's counters.
func (s *switchNode) port(pp *topology.Port, c *fabric.PortCount, end clock.Time) *report.PortCounters {
	out := &report.PortCounters{
		Peer:     fmt.Sprintf("%s:%d", s.plan.Devices[pp.Peer].Name, pp.PeerPort),
		RxFrames: c.Rx.Frames, TxFrames: c.Tx.Frames, RxBytes: c.Rx.Bytes, TxBytes: c.Tx.Bytes, CRC: c.CRC, InDrops: c.InDrops, RxPause: c.Pause,
		PFC: map[string]*report.PFCCounters{}, Watchdog: map[string]*report.WatchCounter{},
		PG: map[string]*report.PGCounters{}, Queue: map[string]*report.QueueCounter{},
	}
	lossless := losslessQueues(pp)
	for n := range 8 {
		key, slot := strconv.Itoa(n), (pp.Num-1)*8+n
		f, q := &c.PFC[n], &c.Queue[n]
		if pp.PFC.Lossless[n] || f.RxPause+f.RxResume+f.Ignored > 0 || q.Tx+q.Drops > 0 {
			rx, tx := s.PauseTimes(pp.Num, n, end)
			out.PFC[key] = &report.PFCCounters{
				RxPause: f.RxPause, RxResume: f.RxResume, TxPause: f.TxPause, TxResume: f.TxResume,
				RxPauseNS: report.NS(rx), TxPauseNS: report.NS(tx), Ignored: f.Ignored,
			}
		}
		if w := s.WatchdogOf(pp.Num, n); w != nil {
			out.Watchdog[key] = &report.WatchCounter{Detected: w.Detected, Restored: w.Restored, TxDropped: w.TxDropped, RxDropped: w.RxDropped}
		}
		sh, hd := s.Memory().PGMarks(slot)
		if pp.PFC.Lossless[n] || sh+hd > 0 || c.PG[n].Drops > 0 {
			g := &report.PGCounters{Occupancy: s.Memory().PGBytes(slot), SharedWatermark: sh, HeadroomWatermark: hd, XOFFCount: c.PG[n].XOFF, Drops: c.PG[n].Drops}
			if c.PG[n].FirstXOFF != clock.Never {
				g.FirstXOFFNS = report.NS(c.PG[n].FirstXOFF)
			}
			out.PG[key] = g
		}
		if lossless[n] || q.Tx+q.Drops > 0 || s.Memory().QueueMark(slot) > 0 {
			out.Queue[key] = &report.QueueCounter{
				TxFrames: q.Tx, Drops: q.Drops, Watermark: s.Memory().QueueMark(slot),
				Occupancy: int64(s.Memory().QueueCells(slot)) * s.dev.Switch.Cell, ECNMarked: q.Marked,
			}
		}
	}
	return out
}

// losslessQueues are the queues of a port's lossless priorities: they are told
// of even when nothing came.
func losslessQueues(pp *topology.Port) (m [8]bool) {
	for n, on := range pp.PFC.Lossless {
		if on {
			m[pp.QoS.PFCToQueue[n]] = true
		}
	}
	return m
}

// Schedule plans a fault in the switch.
func (s *switchNode) Schedule(f *topology.Fault, index int32) error {
	return s.Switch.Schedule(s.plan, f, index)
}
