package sonic

import (
	"fmt"
	"strconv"
	"strings"
)

// qosMaps reads PORT_QOS_MAP and the maps it names.
func (c *Config) qosMaps(s *Switch) {
	const t = "PORT_QOS_MAP"
	if !c.has(t) {
		return
	}
	global := c.tables[t].at["global"]
	for _, e := range c.rows(t) {
		if e == global {
			continue
		}
		for _, name := range strings.Split(e.key, ",") {
			p := s.port(name)
			if p == nil {
				c.fail(e, t, "", name, "no such port in the PORT table")
				continue
			}
			c.portMaps(s, p, e, global)
		}
	}
	for i := range s.Ports {
		if p := &s.Ports[i]; !p.HasMaps {
			c.portMaps(s, p, &entry{file: c.Files[0], key: p.Name, fields: map[string]string{}}, global)
		}
	}
}

func (c *Config) portMaps(s *Switch, p *Port, e, global *entry) {
	p.HasMaps, p.HasPrios = true, true
	for i := range 8 {
		p.TCToPG[i], p.TCToQueue[i], p.PFCToQueue[i] = uint8(i), uint8(i), uint8(i)
	}
	row := e
	if e.fields["dscp_to_tc_map"] == "" && global != nil {
		row = global
	}
	c.fill(row, "dscp_to_tc_map", "DSCP_TO_TC_MAP", p.DSCPToTC[:])
	c.fill(e, "tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP", p.TCToPG[:])
	c.fill(e, "tc_to_queue_map", "TC_TO_QUEUE_MAP", p.TCToQueue[:])
	c.fill(e, "pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE", p.PFCToQueue[:])
	p.Prios = c.prios(e, "pfc_enable")
	toPG := p.TCToPG
	c.fill(e, "pfc_to_pg_map", "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", toPG[:])
	for n := range 8 {
		if p.Prios&(1<<n) != 0 && toPG[n] != p.TCToPG[n] {
			s.note("PORT_QOS_MAP|%s: pfc_to_pg_map sends priority %d to group %d; here a priority belongs to the group of the class of its number, %d", e.key, n, toPG[n], p.TCToPG[n])
		}
	}
	for _, f := range e.order {
		switch f {
		case "dscp_to_tc_map", "tc_to_pg_map", "tc_to_queue_map", "pfc_to_queue_map", "pfc_to_pg_map", "pfc_enable", "pfcwd_sw_enable":
		default:
			s.note("PORT_QOS_MAP field %s is ignored", f)
		}
	}
}

// prios reads a list such as "3,4".
func (c *Config) prios(e *entry, field string) (mask uint8) {
	s := e.fields[field]
	if s == "" {
		return 0
	}
	for _, x := range strings.Split(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(x))
		if err != nil || n < 0 || n > 7 {
			c.fail(e, "PORT_QOS_MAP", field, s, "must be priorities 0..7 separated by commas")
			return 0
		}
		mask |= 1 << n
	}
	return mask
}

// fill lays a map's pairs over to; keys beyond it and values above 7 are
// mistakes.
func (c *Config) fill(e *entry, field, tbl string, to []uint8) {
	if e.fields[field] == "" {
		return
	}
	m := c.ref(e, "PORT_QOS_MAP", field, tbl)
	if m == nil {
		return
	}
	for _, k := range m.order {
		i, err := strconv.Atoi(k)
		if err != nil || i < 0 || i >= len(to) {
			c.fail(m, tbl, k, k, fmt.Sprintf("key must be 0..%d", len(to)-1))
			continue
		}
		to[i] = uint8(c.num(m, tbl, k, 0, 0, 7))
	}
}

// queues reads scheduling and WRED of every queue.
func (c *Config) queues(s *Switch) {
	if !c.has("QUEUE") {
		return
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		p.HasQueues = true
		for q := range 8 {
			p.Sched[q].Weight = 1
		}
	}
	c.portClass("QUEUE", 15, func(port string, q int, e *entry) {
		if q > 7 {
			s.note("queues above 7 are ignored")
			return
		}
		p := s.port(port)
		if r := c.ref(e, "QUEUE", "scheduler", "SCHEDULER"); r != nil {
			p.Sched[q] = c.scheduler(s, r)
		}
		if r := c.ref(e, "QUEUE", "wred_profile", "WRED_PROFILE"); r != nil {
			p.WRED[q] = c.wred(s, r)
		}
	})
}

func (c *Config) scheduler(s *Switch, e *entry) Sched {
	const t = "SCHEDULER"
	for _, f := range e.order {
		if f != "type" && f != "weight" {
			s.note("SCHEDULER field %s is ignored", f)
		}
	}
	switch ty := e.fields["type"]; ty {
	case "STRICT":
		return Sched{Strict: true, Weight: 1}
	case "DWRR", "WRR":
		if ty == "WRR" {
			s.note("SCHEDULER|%s: WRR is run as DWRR (by bytes)", e.key)
		}
		return Sched{Weight: c.num(e, t, "weight", 1, 1, 255)}
	default:
		c.fail(e, t, "type", ty, "must be DWRR, WRR or STRICT")
		return Sched{Weight: 1}
	}
}

// wred reads the green colour of a profile; nil when it does nothing.
func (c *Config) wred(s *Switch, e *entry) *WRED {
	const t = "WRED_PROFILE"
	w := &WRED{
		Min: c.num(e, t, "green_min_threshold", 0, 0, 1<<40), Max: c.num(e, t, "green_max_threshold", 0, 0, 1<<40),
		Percent: c.num(e, t, "green_drop_probability", 100, 0, 100),
	}
	if w.Max < w.Min {
		c.fail(e, t, "green_max_threshold", e.fields["green_max_threshold"], fmt.Sprintf("must not be below green_min_threshold %d", w.Min))
	}
	switch ecn := e.fields["ecn"]; ecn {
	case "", "ecn_none", "ecn_yellow", "ecn_red", "ecn_yellow_red":
	case "ecn_all", "ecn_green", "ecn_green_yellow", "ecn_green_red":
		w.ECN = true
	default:
		c.fail(e, t, "ecn", ecn, "must be ecn_none, ecn_green, ecn_yellow, ecn_red, a pair of them, or ecn_all")
	}
	w.Drop = e.fields["wred_green_enable"] == "true"
	for _, f := range e.order {
		if strings.HasPrefix(f, "yellow_") || strings.HasPrefix(f, "red_") || f == "wred_yellow_enable" || f == "wred_red_enable" {
			s.note("WRED_PROFILE: yellow and red are ignored: all frames are green")
			break
		}
	}
	if !w.ECN && !w.Drop {
		return nil
	}
	return w
}
