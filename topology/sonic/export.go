package sonic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// orderedMap keeps its keys in the order they were set, so that a file reads as
// people write it and equal settings give equal bytes.
type orderedMap struct {
	keys []string
	vals map[string]any
}

func (o *orderedMap) set(k string, v any) {
	if o.vals == nil {
		o.vals = map[string]any{}
	}
	if _, ok := o.vals[k]; !ok {
		o.keys = append(o.keys, k)
	}
	o.vals[k] = v
}

// MarshalJSON writes the keys in order.
func (o *orderedMap) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, k := range o.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		kb, err := json.Marshal(k)
		if err != nil {
			return nil, err
		}
		vb, err := json.Marshal(o.vals[k])
		if err != nil {
			return nil, err
		}
		b.Write(kb)
		b.WriteByte(':')
		b.Write(vb)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func row(pairs ...string) *orderedMap {
	o := &orderedMap{}
	for i := 0; i+1 < len(pairs); i += 2 {
		o.set(pairs[i], pairs[i+1])
	}
	return o
}

// writer names equal content once.
type writer struct {
	s     *Switch
	out   orderedMap
	named map[string]map[string]string // table → content → name
}

// Export writes a switch as config_db.json.
func Export(s *Switch) ([]byte, error) {
	w := &writer{s: s, named: map[string]map[string]string{}}
	w.table("DEVICE_METADATA").set("localhost", row("hostname", s.Host, "hwsku", s.HWSKU, "buffer_model", "traditional"))
	w.ports()
	w.pools()
	for i := range s.Ports {
		w.port(&s.Ports[i])
	}
	b, err := json.Marshal(&w.out)
	if err != nil {
		return nil, err
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, b, "", "  "); err != nil {
		return nil, err
	}
	pretty.WriteByte('\n')
	return pretty.Bytes(), nil
}

func (w *writer) table(name string) *orderedMap {
	if t, ok := w.out.vals[name].(*orderedMap); ok {
		return t
	}
	t := &orderedMap{}
	w.out.set(name, t)
	return t
}

// name returns the row of a table with this content, made on first use.
func (w *writer) name(tbl, prefix string, content *orderedMap) string {
	key := fmt.Sprint(content.keys, content.vals)
	if w.named[tbl] == nil {
		w.named[tbl] = map[string]string{}
	}
	if n, ok := w.named[tbl][key]; ok {
		return n
	}
	t := w.table(tbl)
	n := prefix
	for i := 2; t.vals[n] != nil; i++ {
		n = fmt.Sprintf("%s_%d", prefix, i)
	}
	w.named[tbl][key] = n
	t.set(n, content)
	return n
}

func (w *writer) ports() {
	t, cables := w.table("PORT"), &orderedMap{}
	for i := range w.s.Ports {
		p := &w.s.Ports[i]
		r := row("alias", fmt.Sprintf("port%d", i+1), "index", fmt.Sprint(i+1), "speed", fmt.Sprint(p.Speed), "mtu", fmt.Sprint(max(p.MTU-etherOverhead, 64)), "admin_status", "up")
		t.set(p.Name, r)
		cables.set(p.Name, fmt.Sprintf("%dm", max(p.Meters, 0)))
	}
	w.table("CABLE_LENGTH").set("AZURE", cables)
}

const poolName = "ingress_lossless_pool"

func (w *writer) pools() {
	in := row("type", "ingress", "mode", "dynamic", "size", fmt.Sprint(w.s.Pool))
	if w.s.HeadroomPool > 0 {
		in.set("xoff", fmt.Sprint(w.s.HeadroomPool))
	}
	t := w.table("BUFFER_POOL")
	t.set(poolName, in)
	t.set("egress_lossless_pool", row("type", "egress", "mode", "static", "size", fmt.Sprint(w.s.Pool)))
	t.set("egress_lossy_pool", row("type", "egress", "mode", "dynamic", "size", fmt.Sprint(w.s.Pool)))
}

func threshold(o *orderedMap, l Limit) *orderedMap {
	if l.Dynamic {
		o.set("dynamic_th", fmt.Sprint(l.Step))
	} else {
		o.set("static_th", fmt.Sprint(l.Static))
	}
	return o
}

// port writes every row that belongs to one port.
func (w *writer) port(p *Port) {
	w.qosMap(p)
	var lossless uint8
	for n := range 8 {
		if p.Prios&(1<<n) == 0 {
			continue
		}
		g := p.PG[p.pgOf(n)]
		size := g.Guaranteed
		if w.s.HeadroomPool == 0 {
			size += g.Headroom
		}
		prof := threshold(row("pool", poolName, "size", fmt.Sprint(size), "xon", "0", "xoff", fmt.Sprint(g.Headroom), "xon_offset", fmt.Sprint(g.XONOffset)), g.Limit)
		name := w.name("BUFFER_PROFILE", profileName(p.Speed, max(p.Meters, 0)), prof)
		w.table("BUFFER_PG").set(fmt.Sprintf("%s|%d", p.Name, p.pgOf(n)), row("profile", name))
		lossless |= 1 << p.PFCToQueue[n]
	}
	le := w.name("BUFFER_PROFILE", "egress_lossless_profile", row("pool", "egress_lossless_pool", "size", "0", "static_th", fmt.Sprint(w.s.Pool)))
	ly := w.name("BUFFER_PROFILE", "egress_lossy_profile", threshold(row("pool", "egress_lossy_pool", "size", "0"), p.Lossy))
	for q := range 8 {
		name := ly
		if lossless&(1<<q) != 0 {
			name = le
		}
		w.table("BUFFER_QUEUE").set(fmt.Sprintf("%s|%d", p.Name, q), row("profile", name))
		w.queue(p, q)
	}
	if d := p.Watchdog; d != nil {
		t := w.table("PFC_WD")
		t.set("GLOBAL", row("POLL_INTERVAL", fmt.Sprint(d.Poll)))
		t.set(p.Name, row("action", d.Action, "detection_time", fmt.Sprint(d.Detect), "restoration_time", fmt.Sprint(d.Restore)))
	}
}

func (w *writer) queue(p *Port, q int) {
	r := &orderedMap{}
	sched := row("type", "DWRR", "weight", fmt.Sprint(p.Sched[q].Weight))
	if p.Sched[q].Strict {
		sched = row("type", "STRICT")
	}
	r.set("scheduler", w.name("SCHEDULER", "scheduler.0", sched))
	if x := p.WRED[q]; x != nil {
		ecn := "ecn_none"
		if x.ECN {
			ecn = "ecn_all"
		}
		r.set("wred_profile", w.name("WRED_PROFILE", "AZURE_LOSSLESS", row("ecn", ecn, "wred_green_enable", fmt.Sprint(x.Drop),
			"green_min_threshold", fmt.Sprint(x.Min), "green_max_threshold", fmt.Sprint(x.Max), "green_drop_probability", fmt.Sprint(x.Percent))))
	}
	w.table("QUEUE").set(fmt.Sprintf("%s|%d", p.Name, q), r)
}

func (w *writer) qosMap(p *Port) {
	pairs := func(m []uint8) *orderedMap {
		o := &orderedMap{}
		for i, v := range m {
			o.set(fmt.Sprint(i), fmt.Sprint(v))
		}
		return o
	}
	prios := strings.NewReplacer("[", "", "]", "", " ", "").Replace(list(p.Prios))
	w.table("PORT_QOS_MAP").set(p.Name, row(
		"dscp_to_tc_map", w.name("DSCP_TO_TC_MAP", "AZURE", pairs(p.DSCPToTC[:])),
		"tc_to_pg_map", w.name("TC_TO_PRIORITY_GROUP_MAP", "AZURE", pairs(p.TCToPG[:])),
		"tc_to_queue_map", w.name("TC_TO_QUEUE_MAP", "AZURE", pairs(p.TCToQueue[:])),
		"pfc_to_queue_map", w.name("MAP_PFC_PRIORITY_TO_QUEUE", "AZURE", pairs(p.PFCToQueue[:])),
		"pfc_enable", prios, "pfcwd_sw_enable", prios))
}
