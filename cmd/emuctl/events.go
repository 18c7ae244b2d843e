package main

import (
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// maxEvents bounds events.jsonl; a run that makes more ends the list with one
// "truncated" event.
const maxEvents = 1_000_000

// eventLog keeps the exceptional notes of a run for events.jsonl.
type eventLog struct {
	plan   *topology.Plan
	events []report.Event
}

func (l *eventLog) add(batch []record.Record) {
	for i := range batch {
		r := &batch[i]
		switch {
		case len(l.events) > maxEvents:
			return
		case len(l.events) == maxEvents:
			l.events = append(l.events, report.Event{AtNS: report.NS(r.At), Kind: "truncated", Fields: map[string]any{"limit": maxEvents}})
			return
		}
		l.events = append(l.events, l.event(r))
	}
}

// event names what a record says; zero fields are left out.
func (l *eventLog) event(r *record.Record) report.Event {
	f := map[string]any{}
	put := func(key string, v int64) {
		if v != 0 {
			f[key] = v
		}
	}
	put("port", int64(r.Port))
	put("prio", int64(r.Prio))
	put("qpn", int64(r.QPN))
	put("psn", int64(r.PSN))
	put("iteration", int64(r.Iter))
	put("x", r.X)
	put("y", r.Y)
	for key, k := range map[string]uint32{"src": r.Src, "dst": r.Dst} {
		if k > 0 && int(k) <= len(l.plan.RNICs) {
			f[key] = l.plan.Devices[l.plan.RNICs[k-1]].Name
		}
	}
	switch {
	case r.Kind == record.Drop:
		f["reason"] = record.Reason(r.Reason).String()
	default:
		put("code", int64(r.Reason))
	}
	if r.Fault > 0 && int(r.Fault) <= len(l.plan.Faults) {
		f["fault"] = l.plan.Faults[r.Fault-1].Name
	}
	return report.Event{AtNS: report.NS(r.At), Device: l.plan.Devices[r.Dev].Name, Kind: kindName(r.Kind), Fields: f}
}

var kindNames = map[record.Kind]string{
	record.Drop: "drop", record.OutOfSeq: "out_of_sequence", record.NakSent: "nak_sent", record.NakRecv: "nak_received",
	record.RnrSent: "rnr_sent", record.RnrRecv: "rnr_received", record.ImpliedNak: "implied_nak", record.Timeout: "timeout",
	record.Retransmit: "retransmit", record.Rewind: "rewind", record.Duplicate: "duplicate", record.ReqDone: "request_done",
	record.ReqPosted: "request_posted", record.QPError: "qp_error", record.Xoff: "xoff", record.Xon: "xon",
	record.PauseStart: "pause_start", record.PauseEnd: "pause_end", record.Watchdog: "watchdog", record.FaultHit: "fault_hit",
	record.FaultStart: "fault_start", record.FaultEnd: "fault_end", record.CnpSent: "cnp_sent", record.CnpRecv: "cnp_received",
	record.RateCut: "rate_cut", record.Clamp: "timer_clamped", record.Migrate: "path_migrated", record.LinkState: "link_state",
	record.Ignored: "response_ignored", record.Deadlock: "deadlock",
}

func kindName(k record.Kind) string {
	if n, ok := kindNames[k]; ok {
		return n
	}
	return "unknown"
}
