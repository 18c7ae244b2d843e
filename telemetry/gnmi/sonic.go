package gnmi

import (
	"fmt"
	"maps"
	"strconv"

	"github.com/rocemu/rocemu/report/counters"
)

// portName is the SONiC name of a port: Ethernet0 is port 1.
func portName(n int) string { return "Ethernet" + strconv.Itoa(n-1) }

// sonicPort are a port's counters by their SAI names.
var sonicPort = []struct {
	name string
	id   counters.ID
}{
	{"SAI_PORT_STAT_IF_IN_UCAST_PKTS", counters.RxFrames},
	{"SAI_PORT_STAT_IF_OUT_UCAST_PKTS", counters.TxFrames},
	{"SAI_PORT_STAT_IF_IN_OCTETS", counters.RxBytes},
	{"SAI_PORT_STAT_IF_OUT_OCTETS", counters.TxBytes},
	{"SAI_PORT_STAT_IF_IN_ERRORS", counters.CRCErrors},
	{"SAI_PORT_STAT_IF_IN_DISCARDS", counters.InDrops},
	{"SAI_PORT_STAT_IN_DROPPED_PKTS", counters.InDrops},
}

// sonicPrio are those of a priority; %d is the priority.
var sonicPrio = []struct {
	name string
	id   counters.ID
	div  int64 // value divided by this
}{
	{"SAI_PORT_STAT_PFC_%d_RX_PKTS", counters.PFCRxPause, 1},
	{"SAI_PORT_STAT_PFC_%d_TX_PKTS", counters.PFCTxPause, 1},
	{"SAI_PORT_STAT_PFC_%d_ON2OFF_RX_PKTS", counters.PFCOn2Off, 1},
	{"SAI_PORT_STAT_PFC_%d_RX_PAUSE_DURATION_US", counters.PFCRxPaused, 1_000_000},
	{"SAI_PORT_STAT_PFC_%d_TX_PAUSE_DURATION_US", counters.PFCTxPaused, 1_000_000},
}

// sonicSub are the tables below a port: the key is PORT:INDEX.
var sonicSub = []struct {
	table string
	stats []stat
}{
	{"Queues", []stat{
		{"SAI_QUEUE_STAT_PACKETS", counters.QueueTx},
		{"SAI_QUEUE_STAT_DROPPED_PACKETS", counters.QueueDrops},
		{"SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS", counters.QueueMarked},
		{"SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES", counters.QueueOccupancy},
		{"SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES", counters.QueueMark},
	}},
	{"PriorityGroups", []stat{
		{"SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS", counters.PGDrops},
		{"SAI_INGRESS_PRIORITY_GROUP_STAT_CURR_OCCUPANCY_BYTES", counters.PGOccupancy},
		{"SAI_INGRESS_PRIORITY_GROUP_STAT_SHARED_WATERMARK_BYTES", counters.PGSharedMark},
		{"SAI_INGRESS_PRIORITY_GROUP_STAT_XOFF_ROOM_WATERMARK_BYTES", counters.PGHeadroomMark},
	}},
	{"Pfcwd", []stat{
		{"PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED", counters.WdDetected},
		{"PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED", counters.WdRestored},
		{"PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS", counters.WdTxDropped},
		{"PFC_WD_QUEUE_STATS_RX_DROPPED_PACKETS", counters.WdRxDropped},
	}},
}

type stat struct {
	name string
	id   counters.ID
}

// sonicMarks are the tables of watermarks.
var sonicMarks = map[string]origin{"PERIODIC_WATERMARKS": fromPeriodic, "USER_WATERMARKS": fromUser, "PERSISTENT_WATERMARKS": fromPoints}

// port is a port of a COUNTERS_DB table as a tree: fields with their values'
// places, and tables below it as objects keyed PORT:INDEX.
func (l *layout) port(table string, n int) map[string]any {
	if of, ok := sonicMarks[table]; ok {
		return l.marksOf(n, of)
	}
	return l.countersOf(n)
}

// countersOf is a port of COUNTERS.
func (l *layout) countersOf(n int) map[string]any {
	port := map[string]any{}
	for _, s := range sonicPort {
		port[s.name] = l.sum(place{n, -1, s.id})
	}
	for prio := range 8 {
		for _, s := range sonicPrio {
			f := l.sum(place{n, prio, s.id})
			f.div = s.div
			port[fmt.Sprintf(s.name, prio)] = f
		}
	}
	var marked []place
	for q := range 8 {
		marked = append(marked, place{n, q, counters.QueueMarked})
	}
	port["SAI_PORT_STAT_ECN_MARKED_PACKETS"] = l.sum(marked...)
	for _, sub := range sonicSub {
		port[sub.table] = subTable(n, sub.stats, func(at place) (field, bool) { return l.sum(at), true })
	}
	return port
}

// marksOf is a port of a table of watermarks.
func (l *layout) marksOf(n int, of origin) map[string]any {
	value := func(at place) (field, bool) {
		if _, isMark := markOf[at.id]; !isMark {
			return field{}, false
		}
		if i, ok := l.mark[at]; ok && of != fromPoints {
			return field{from: of, at: []int{i}, div: 1}, true
		}
		return l.sum(at), true
	}
	return map[string]any{"Queues": subTable(n, sonicSub[0].stats, value), "PriorityGroups": subTable(n, sonicSub[1].stats, value)}
}

// subTable builds the rows PORT:0 to PORT:7 of a table below a port.
func subTable(port int, stats []stat, value func(place) (field, bool)) map[string]any {
	rows := map[string]any{}
	for i := range 8 {
		row := map[string]any{}
		for _, s := range stats {
			if f, ok := value(place{port, i, s.id}); ok {
				row[s.name] = f
			}
		}
		rows[portName(port)+":"+strconv.Itoa(i)] = row
	}
	return rows
}

// sonic finds what a COUNTERS_DB path means: TABLE, TABLE/PORT, TABLE/PORT/FIELD
// or TABLE/PORT/SUB[/KEY[/FIELD]]. A PORT of Ethernet* means one object keyed by
// port (below it, for SUB, by PORT:INDEX). Without tables below.
func (l *layout) sonic(elems []string) (any, bool) {
	if _, marks := sonicMarks[elems[0]]; !marks && elems[0] != "COUNTERS" {
		return nil, false
	}
	if len(elems) > 1 && elems[1] != "Ethernet*" && elems[1] != "*" {
		for _, n := range l.ports {
			if portName(n) == elems[1] {
				return descend(l.port(elems[0], n), elems[2:])
			}
		}
		return nil, false
	}
	out := map[string]any{}
	for _, n := range l.ports {
		got, ok := descend(l.port(elems[0], n), elems[min(2, len(elems)):])
		if !ok {
			continue
		}
		if sub, isMap := got.(map[string]any); isMap && len(elems) == 3 {
			maps.Copy(out, sub)
		} else if isMap {
			out[portName(n)] = sub
		} else {
			out[portName(n)] = map[string]any{elems[len(elems)-1]: got}
		}
	}
	return out, len(out) > 0
}

// descend follows elems from a port through nested objects. At the port itself
// it leaves out the tables below, which have paths of their own.
func descend(port map[string]any, elems []string) (any, bool) {
	var at any = port
	for _, e := range elems {
		o, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = o[e]; !ok {
			return nil, false
		}
	}
	if len(elems) == 0 {
		return plainFields(port), true
	}
	return at, true
}

// plainFields are the entries that are no tables, unless there are only tables.
func plainFields(o map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range o {
		if _, sub := v.(map[string]any); !sub {
			out[k] = v
		}
	}
	if len(out) == 0 {
		return o
	}
	return out
}
