package sonic

import (
	"slices"
	"strconv"
	"strings"
)

// Port names end in a number: Ethernet4 comes before Ethernet12. The i-th port
// in this order is port i of the device in a fabric file.

func portLess(a, b string) int {
	sa, na := splitNumber(a)
	sb, nb := splitNumber(b)
	if sa != sb {
		return strings.Compare(sa, sb)
	}
	return na - nb
}

func splitNumber(s string) (string, int) {
	t := strings.TrimRight(s, "0123456789")
	n, err := strconv.Atoi(s[len(t):])
	if err != nil {
		return s, -1
	}
	return t, n
}

// portNames lists the device's ports: those of the PORT table, or of the
// tables that name ports when there is none.
func (c *Config) portNames() []string {
	var out []string
	if c.has("PORT") {
		for _, r := range c.rows("PORT") {
			out = append(out, r.key)
		}
	} else {
		seen := map[string]bool{}
		for _, t := range []string{"BUFFER_PG", "BUFFER_QUEUE", "QUEUE", "PORT_QOS_MAP", "PFC_WD"} {
			for _, r := range c.rows(t) {
				ports, _, _ := strings.Cut(r.key, "|")
				for _, p := range strings.Split(ports, ",") {
					if p != "" && !isGlobal(p) && !seen[p] {
						seen[p] = true
						out = append(out, p)
					}
				}
			}
		}
	}
	slices.SortFunc(out, portLess)
	return out
}

func isGlobal(s string) bool { return strings.EqualFold(s, "global") }

// classes reads a range of the second part of a key: "3", "3-4"; hi is the
// largest class.
func classes(s string, hi int) (from, to int, ok bool) {
	a, b, dash := strings.Cut(s, "-")
	from, err := strconv.Atoi(a)
	if err != nil {
		return 0, 0, false
	}
	to = from
	if dash {
		if to, err = strconv.Atoi(b); err != nil {
			return 0, 0, false
		}
	}
	return from, to, from >= 0 && from <= to && to <= hi
}

// portClass visits the rows of a table keyed "ports|classes", each (port,
// class) once: a later row wins.
func (c *Config) portClass(tbl string, hi int, visit func(port string, class int, e *entry)) {
	known := map[string]bool{}
	for _, p := range c.portNames() {
		known[p] = true
	}
	for _, e := range c.rows(tbl) {
		ports, rng, ok := strings.Cut(e.key, "|")
		from, to, good := classes(rng, hi)
		if !ok || !good {
			c.fail(e, tbl, "", e.key, "key must be PORT[,PORT…]|N or PORT|N-M with N, M in 0.."+strconv.Itoa(hi))
			continue
		}
		for _, p := range strings.Split(ports, ",") {
			if !known[p] {
				c.fail(e, tbl, "", p, "no such port in the PORT table")
				continue
			}
			for k := from; k <= to; k++ {
				visit(p, k, e)
			}
		}
	}
}
