package gnmi

import (
	"fmt"
	"maps"
	"slices"
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

// sonicTables builds COUNTERS_DB: table → port → fields; values are decimal
// strings, tables below a port are objects keyed PORT:INDEX.
func sonicTables(v *View, m *marks) map[string]map[string]any {
	out := map[string]map[string]any{"COUNTERS": {}, "PERIODIC_WATERMARKS": {}, "USER_WATERMARKS": {}, "PERSISTENT_WATERMARKS": {}}
	for _, n := range v.ports() {
		name := portName(n)
		port := map[string]any{}
		for _, s := range sonicPort {
			port[s.name] = strconv.FormatInt(v.values[place{n, -1, s.id}], 10)
		}
		for prio := range 8 {
			for _, s := range sonicPrio {
				port[fmt.Sprintf(s.name, prio)] = strconv.FormatInt(v.values[place{n, prio, s.id}]/s.div, 10)
			}
		}
		var marked int64
		for q := range 8 {
			marked += v.values[place{n, q, counters.QueueMarked}]
		}
		port["SAI_PORT_STAT_ECN_MARKED_PACKETS"] = strconv.FormatInt(marked, 10)
		for _, sub := range sonicSub {
			port[sub.table] = subTable(v.values, n, sub.stats, false)
		}
		out["COUNTERS"][name] = port
		for table, values := range map[string]map[place]int64{
			"PERIODIC_WATERMARKS": m.periodic, "USER_WATERMARKS": m.user, "PERSISTENT_WATERMARKS": m.persistent,
		} {
			out[table][name] = map[string]any{
				"Queues":         subTable(values, n, sonicSub[0].stats, true),
				"PriorityGroups": subTable(values, n, sonicSub[1].stats, true),
			}
		}
	}
	return out
}

// subTable builds the rows PORT:0 to PORT:7 of a table below a port.
func subTable(values map[place]int64, port int, stats []stat, marksOnly bool) map[string]any {
	rows := map[string]any{}
	for i := range 8 {
		row := map[string]any{}
		for _, s := range stats {
			if _, isMark := markOf[s.id]; marksOnly && !isMark {
				continue
			}
			row[s.name] = strconv.FormatInt(values[place{port, i, s.id}], 10)
		}
		rows[fmt.Sprintf("%s:%d", portName(port), i)] = row
	}
	return rows
}

// ports lists the port numbers of a view.
func (v *View) ports() []int {
	seen := map[int]bool{}
	for p := range v.values {
		if p.port > 0 {
			seen[p.port] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// sonicGet answers a COUNTERS_DB path: TABLE, TABLE/PORT, TABLE/PORT/FIELD or
// TABLE/PORT/SUB[/KEY[/FIELD]]. A PORT of Ethernet* answers with one object
// keyed by port (below it, for SUB, by PORT:INDEX). Without tables below.
func (v *View) sonicGet(elems []string) (any, bool) {
	table, ok := v.sonic[elems[0]]
	if !ok {
		return nil, false
	}
	if len(elems) == 1 {
		return fields(table), true
	}
	if elems[1] != "Ethernet*" && elems[1] != "*" {
		return descend(table, elems[1:])
	}
	out := map[string]any{}
	for name := range table {
		got, ok := descend(table, append([]string{name}, elems[2:]...))
		if !ok {
			continue
		}
		if sub, isMap := got.(map[string]any); isMap && len(elems) == 3 {
			maps.Copy(out, sub)
		} else if isMap {
			out[name] = sub
		} else {
			out[name] = map[string]any{elems[len(elems)-1]: got}
		}
	}
	return out, len(out) > 0
}

// descend follows elems through nested objects. At a port it leaves out the
// tables below, which have paths of their own.
func descend(m map[string]any, elems []string) (any, bool) {
	var at any = m
	for _, e := range elems {
		o, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = o[e]; !ok {
			return nil, false
		}
	}
	if o, ok := at.(map[string]any); ok && len(elems) == 1 {
		return plainFields(o), true
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

func fields(table map[string]any) map[string]any {
	out := map[string]any{}
	for name, p := range table {
		out[name] = plainFields(p.(map[string]any))
	}
	return out
}
