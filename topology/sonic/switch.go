package sonic

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Switch is what a configuration means: per port, in port order.
type Switch struct {
	Host, HWSKU  string
	ASIC         string // profile of the fabric file guessed from the hardware SKU, or empty
	Pool         int64  // bytes of the shared pool of lossless traffic, 0 = computed by the device
	HeadroomPool int64  // bytes, 0 = private headroom
	Ports        []Port
	Notes        []string // what was ignored or read with a difference
	bare         int      // lossless groups without a profile
}

// Port is one port's settings. Has… tells which were in the configuration.
type Port struct {
	Name     string
	Speed    int64 // Mb/s, 0 = not given
	Meters   int64 // cable, -1 = not given
	MTU      int   // largest frame L, 0 = not given
	Neighbor string

	HasPrios bool
	Prios    uint8 // mask of lossless priorities

	HasMaps    bool
	DSCPToTC   [64]uint8
	TCToPG     [8]uint8
	TCToQueue  [8]uint8
	PFCToQueue [8]uint8

	PG [8]Group // by PG

	HasLossy bool
	Lossy    Limit

	HasQueues bool // scheduler and WRED
	Sched     [8]Sched
	WRED      [8]*WRED

	HasDog   bool
	Watchdog *Watchdog
}

// Limit is a threshold: alpha = 2^Step when dynamic, else Static bytes.
type Limit struct {
	Dynamic bool
	Step    int
	Static  int64
}

// Group is a lossless priority group. Auto means the device computes the
// headroom.
type Group struct {
	Set, Auto  bool
	Limit      Limit
	Guaranteed int64
	XONOffset  int64
	Headroom   int64
}

// Sched is a queue's scheduling; weight 1 when nothing is said.
type Sched struct {
	Strict bool
	Weight int64
}

// WRED marks between Min and Max bytes with up to Percent; without ECN it
// drops.
type WRED struct {
	Min, Max, Percent int64
	ECN, Drop         bool // ECT marked; what is selected and cannot be marked is dropped
}

// Watchdog is a PFC watchdog, in milliseconds.
type Watchdog struct {
	Detect, Restore, Poll int64
	Action                string
}

// used are the tables that are read.
var used = []string{
	"DEVICE_METADATA", "PORT", "CABLE_LENGTH", "BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_PG", "BUFFER_QUEUE", "DSCP_TO_TC_MAP",
	"TC_TO_PRIORITY_GROUP_MAP", "TC_TO_QUEUE_MAP", "MAP_PFC_PRIORITY_TO_QUEUE", "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", "PORT_QOS_MAP",
	"WRED_PROFILE", "SCHEDULER", "QUEUE", "PFC_WD", "DEFAULT_LOSSLESS_BUFFER_PARAMETER", "DEVICE_NEIGHBOR",
}

// asics guesses the profile from a part of the hardware SKU.
var asics = []struct{ part, asic string }{
	{"rocemu-", ""},
	{"MSN27", "spectrum"},
	{"MSN24", "spectrum"},
	{"MSN21", "spectrum"},
	{"MSN2", "spectrum"},
	{"SN2", "spectrum"},
	{"MSN3", "spectrum2"},
	{"SN3", "spectrum2"},
	{"MSN4", "spectrum3"},
	{"SN4", "spectrum3"},
	{"SN5", "spectrum4"},
	{"7050CX3", "td3"},
	{"7050-QX", "td2"},
	{"7050QX", "td2"},
	{"S6000", "td2"},
	{"S6100", "th"},
	{"7060X6", "th5"},
	{"7060", "th"},
	{"7260", "th2"},
	{"Z9332", "th3"},
	{"Z9664", "th4"},
	{"B6510", "td3"},
	{"RA-B6920", "th3"},
	{"B6910", "th2"},
}

func asicOf(sku string) string {
	if a, ok := strings.CutPrefix(sku, "rocemu-"); ok {
		return a
	}
	for _, a := range asics {
		if a.asic != "" && strings.Contains(strings.ToUpper(sku), strings.ToUpper(a.part)) {
			return a.asic
		}
	}
	return ""
}

// Switch interprets the tables. All mistakes are reported together.
func (c *Config) Switch() (*Switch, error) {
	s := &Switch{}
	c.errs = nil
	c.metadata(s)
	c.pools(s)
	for _, n := range c.portNames() {
		s.Ports = append(s.Ports, Port{Name: n, Meters: -1})
	}
	if len(s.Ports) == 0 {
		s.note("names no ports")
	}
	c.portTable(s)
	c.cables(s)
	c.qosMaps(s)
	c.groups(s)
	c.bufferQueues(s)
	c.queues(s)
	c.watchdogs(s)
	c.rest(s)
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	return s, nil
}

func (s *Switch) note(format string, a ...any) {
	t := fmt.Sprintf(format, a...)
	if !slices.Contains(s.Notes, t) {
		s.Notes = append(s.Notes, t)
	}
}

func (s *Switch) port(name string) *Port {
	for i := range s.Ports {
		if s.Ports[i].Name == name {
			return &s.Ports[i]
		}
	}
	return nil
}

func (c *Config) metadata(s *Switch) {
	t := c.tables["DEVICE_METADATA"]
	if t == nil || t.at["localhost"] == nil {
		return
	}
	m := t.at["localhost"]
	s.Host, s.HWSKU = m.fields["hostname"], m.fields["hwsku"]
	if s.ASIC = asicOf(s.HWSKU); s.ASIC != "" && !strings.HasPrefix(s.HWSKU, "rocemu-") {
		s.note("hwsku %s is taken for asic %s (cell size, memory)", s.HWSKU, s.ASIC)
	}
}

// pools reads the ingress pool that lossless groups share.
func (c *Config) pools(s *Switch) {
	for _, e := range c.rows("BUFFER_POOL") {
		size := c.num(e, "BUFFER_POOL", "size", 0, 0, 1<<40)
		xoff := c.num(e, "BUFFER_POOL", "xoff", 0, 0, 1<<40)
		switch t := e.fields["type"]; {
		case t != "ingress" && t != "egress" && t != "both":
			c.fail(e, "BUFFER_POOL", "type", t, "must be ingress, egress or both")
		case t == "egress":
			s.note("BUFFER_POOL|%s: an egress pool; egress limits work on the one shared pool", e.key)
		case strings.Contains(e.key, "lossless") || s.Pool == 0 && !strings.Contains(e.key, "lossy"):
			s.Pool, s.HeadroomPool = size, xoff
		default:
			s.note("BUFFER_POOL|%s: a second ingress pool; there is one shared pool", e.key)
		}
		if m := e.fields["mode"]; m != "static" && m != "dynamic" {
			c.fail(e, "BUFFER_POOL", "mode", m, "must be static or dynamic")
		}
	}
}

const etherOverhead = 14 + 4 + 4 // Ethernet header, FCS and one tag round the IP MTU, as the agent sets it

func (c *Config) portTable(s *Switch) {
	for _, e := range c.rows("PORT") {
		p := s.port(e.key)
		p.Speed = c.num(e, "PORT", "speed", 0, 1, 1_600_000)
		if n := c.num(e, "PORT", "mtu", 0, 64, 65000); n > 0 {
			p.MTU = int(n) + etherOverhead
		}
		if e.fields["admin_status"] == "down" {
			s.note("PORT|%s is down in the configuration; its cable decides here", e.key)
		}
	}
	for _, e := range c.rows("DEVICE_NEIGHBOR") {
		if p := s.port(e.key); p != nil {
			p.Neighbor = e.fields["name"] + ":" + e.fields["port"]
		}
	}
}

func (c *Config) cables(s *Switch) {
	for _, e := range c.rows("CABLE_LENGTH") {
		for _, port := range e.order {
			m, err := meters(e.fields[port])
			p := s.port(port)
			switch {
			case err != nil:
				c.fail(e, "CABLE_LENGTH", port, e.fields[port], "must be whole metres, such as 40m")
			case p != nil:
				p.Meters = m
			}
		}
	}
}

// rest lists tables that were not read.
func (c *Config) rest(s *Switch) {
	for _, n := range c.names {
		if slices.Contains(used, n) {
			continue
		}
		if isWatchdogSet(c.rows(n)) {
			c.watchdogSet(s, n, c.rows(n)[0])
			continue
		}
		s.note("table %s (%d rows) is ignored", n, len(c.rows(n)))
	}
	for _, n := range used {
		for _, e := range c.rows(n) {
			for _, f := range e.odd {
				s.note("%s|%s|%s is ignored: neither text nor number", n, e.key, f)
			}
		}
	}
}
