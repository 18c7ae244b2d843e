package sonic

import (
	"fmt"
	"strings"
)

// groups reads the lossless priority groups of every port: BUFFER_PG, and in
// the traditional model profiles made of the lookup table.
func (c *Config) groups(s *Switch) {
	lossy := map[string]bool{}
	c.portClass("BUFFER_PG", 7, func(port string, g int, e *entry) {
		p := s.port(port)
		switch prof := e.fields["profile"]; {
		case prof == "NULL":
			p.PG[g] = Group{Set: true, Auto: true, Limit: Limit{Dynamic: true, Step: c.defaultStep()}}
		case prof == "":
			c.fail(e, "BUFFER_PG", "profile", "", "is missing")
		default:
			if r := c.profile(s, e, "BUFFER_PG"); r != nil && r.lossless {
				p.PG[g] = r.group
			} else if r != nil {
				lossy[r.name] = true
			}
		}
	})
	for n := range lossy {
		s.note("BUFFER_PROFILE|%s: lossy groups are limited on egress only", n)
	}
	c.inferPrios(s)
	for i := range s.Ports {
		c.lookupGroups(s, &s.Ports[i])
	}
	if s.bare > 0 {
		s.note("%d lossless groups have no profile and there is no lookup table: their headroom is computed (auto)", s.bare)
	}
}

// defaultStep is the dynamic model's threshold.
func (c *Config) defaultStep() int {
	for _, e := range c.rows("DEFAULT_LOSSLESS_BUFFER_PARAMETER") {
		return int(c.num(e, "DEFAULT_LOSSLESS_BUFFER_PARAMETER", "default_dynamic_th", 0, -8, 7))
	}
	return 0
}

type profile struct {
	name     string
	lossless bool
	group    Group
	limit    Limit
}

// profile reads the BUFFER_PROFILE that a row names. A lossless one has xoff;
// without a shared headroom pool its size holds guaranteed space and headroom.
func (c *Config) profile(s *Switch, from *entry, tbl string) *profile {
	e := c.ref(from, tbl, "profile", "BUFFER_PROFILE")
	if e == nil {
		return nil
	}
	const t = "BUFFER_PROFILE"
	r := &profile{name: e.key}
	c.ref(e, t, "pool", "BUFFER_POOL")
	size := c.num(e, t, "size", 0, 0, 1<<40)
	_, dyn := e.fields["dynamic_th"]
	_, stat := e.fields["static_th"]
	if dyn == stat {
		c.fail(e, t, "dynamic_th", e.fields["dynamic_th"], "a profile has one of dynamic_th and static_th")
		return r
	}
	r.limit = Limit{Dynamic: dyn, Step: int(c.num(e, t, "dynamic_th", 0, -8, 7)), Static: c.num(e, t, "static_th", 0, 0, 1<<40)}
	xoff, ok := e.fields["xoff"]
	if r.lossless = ok && xoff != ""; !r.lossless {
		return r
	}
	g := Group{Set: true, Limit: r.limit, Headroom: c.num(e, t, "xoff", 0, 0, 1<<40), XONOffset: c.num(e, t, "xon_offset", 0, 0, 1<<40)}
	g.Guaranteed = size
	if s.HeadroomPool == 0 {
		if g.Guaranteed = size - g.Headroom; g.Guaranteed < 0 {
			c.fail(e, t, "size", e.fields["size"], fmt.Sprintf("must hold xoff %d: there is no shared headroom pool", g.Headroom))
		}
	}
	if xon := c.num(e, t, "xon", 0, 0, 1<<40); xon > 0 && g.XONOffset == 0 {
		s.note("BUFFER_PROFILE|%s: xon %d without xon_offset: XON comes as soon as use is below the XOFF point", e.key, xon)
	}
	r.group = g
	return r
}

// inferPrios takes the lossless priorities from the groups or queues when no
// PORT_QOS_MAP names them.
func (c *Config) inferPrios(s *Switch) {
	if c.has("PORT_QOS_MAP") {
		return
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		for g := range 8 {
			if p.PG[g].Set {
				p.HasPrios = true
				p.Prios |= 1 << g
			}
		}
	}
	c.portClass("BUFFER_QUEUE", 15, func(port string, q int, e *entry) {
		p := s.port(port)
		if r := c.ref(e, "BUFFER_QUEUE", "profile", "BUFFER_PROFILE"); r != nil && q < 8 && strings.Contains(r.fields["pool"], "lossless") {
			p.HasPrios = true
			p.Prios |= 1 << q
		}
	})
	s.note("no PORT_QOS_MAP: lossless priorities are those of the lossless groups and queues")
}

// pgOf is the PG of a priority: the class of the same number, through the map.
func (p *Port) pgOf(prio int) int {
	if p.HasMaps {
		return int(p.TCToPG[prio])
	}
	return prio
}

// lookupGroups makes the profiles that a traditional configuration leaves to
// pg_profile_lookup.ini.
func (c *Config) lookupGroups(s *Switch, p *Port) {
	for n := range 8 {
		if p.Prios&(1<<n) == 0 {
			continue
		}
		g := &p.PG[p.pgOf(n)]
		if g.Set {
			continue
		}
		if c.lookup == nil {
			s.bare++
			continue
		}
		if p.Speed == 0 || p.Meters < 0 {
			c.fail(nil, "PORT|"+p.Name, "", "", fmt.Sprintf("lossless priority %d needs a profile of %s, so speed and CABLE_LENGTH", n, c.lookup.Name))
			continue
		}
		r, err := c.lookup.Row(p.Speed, p.Meters)
		if err != nil {
			c.errs = append(c.errs, fmt.Errorf("%s: %w", p.Name, err))
			continue
		}
		*g = Group{Set: true, Limit: Limit{Dynamic: true, Step: r.Threshold}, Headroom: r.XOFF, XONOffset: r.XONOffset, Guaranteed: r.Size}
		if s.HeadroomPool == 0 {
			g.Guaranteed = max(r.Size-r.XOFF, 0)
		}
	}
}

// bufferQueues reads the egress limit of lossy queues. The model has one for a
// port: that of its lowest lossy queue.
func (c *Config) bufferQueues(s *Switch) {
	type seen struct {
		port string
		lim  Limit
	}
	first := map[string]seen{}
	c.portClass("BUFFER_QUEUE", 15, func(port string, q int, e *entry) {
		p := s.port(port)
		r := c.profile(s, e, "BUFFER_QUEUE")
		if r == nil || q > 7 || p.losslessQueue(q) {
			return
		}
		old, ok := first[port]
		if ok && old.lim != r.limit {
			s.note("BUFFER_QUEUE|%s: queue %d has a limit of its own; the lossy queues of a port share that of the lowest", e.key, q)
			return
		}
		first[port] = seen{port, r.limit}
		p.HasLossy, p.Lossy = true, r.limit
	})
}

func (p *Port) losslessQueue(q int) bool {
	for n := range 8 {
		if p.Prios&(1<<n) == 0 {
			continue
		}
		if p.HasMaps && int(p.PFCToQueue[n]) == q || !p.HasMaps && n == q {
			return true
		}
	}
	return false
}
