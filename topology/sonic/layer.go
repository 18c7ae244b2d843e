package sonic

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
)

// kv is a setting of a fabric file: dotted path and YAML value.
type kv struct{ path, value string }

// Layer renders the settings as the body of a switch layer of a fabric file
// (what stands under switches.leaf or switches.devices.NAME). What most ports
// have stands once; ports that differ follow by number.
func (s *Switch) Layer() []byte {
	var b bytes.Buffer
	var top []kv
	if s.ASIC != "" {
		top = append(top, kv{"asic", s.ASIC})
	}
	if s.Pool > 0 {
		top = append(top, kv{"buffer.size", bytesOf(s.Pool)})
	}
	if s.HeadroomPool > 0 {
		top = append(top, kv{"buffer.headroom_pool", bytesOf(s.HeadroomPool)})
	}
	all := make([][]kv, len(s.Ports))
	count := map[string]int{}
	best := -1
	for i := range s.Ports {
		all[i] = s.settings(&s.Ports[i])
		key := fmt.Sprint(all[i])
		count[key]++
		if best < 0 || count[key] > count[fmt.Sprint(all[best])] {
			best = i
		}
	}
	if best >= 0 {
		top = append(top, all[best]...)
	}
	writeTree(&b, top, 0)
	s.differing(&b, all, best)
	return b.Bytes()
}

// differing writes the ports whose settings are not those of port best.
func (s *Switch) differing(b *bytes.Buffer, all [][]kv, best int) {
	head := false
	for i := range all {
		diff := minus(all[i], all[best])
		if len(diff) == 0 {
			continue
		}
		if !head {
			b.WriteString("ports:\n")
			head = true
		}
		fmt.Fprintf(b, "  %d:  # %s\n", i+1, s.Ports[i].Name)
		writeTree(b, diff, 4)
	}
}

// minus lists the settings of a that b lacks or has otherwise.
func minus(a, b []kv) (out []kv) {
	have := map[string]string{}
	for _, x := range b {
		have[x.path] = x.value
	}
	for _, x := range a {
		if v, ok := have[x.path]; !ok || v != x.value {
			out = append(out, x)
		}
	}
	return out
}

// settings lists what a port has in a fixed order. All ports of a switch get
// the same kinds of settings, so that one can be told from another by
// difference.
func (s *Switch) settings(p *Port) (out []kv) {
	add := func(path, format string, a ...any) { out = append(out, kv{path, fmt.Sprintf(format, a...)}) }
	if p.MTU > 0 {
		add("mtu", "%dB", p.MTU)
	}
	if p.HasMaps {
		add("qos.dscp_to_tc", "%s", mapOf(p.DSCPToTC[:]))
		add("qos.tc_to_pg", "%s", mapOf(p.TCToPG[:]))
		add("qos.tc_to_queue", "%s", mapOf(p.TCToQueue[:]))
		add("qos.pfc_to_queue", "%s", mapOf(p.PFCToQueue[:]))
	}
	if p.HasQueues {
		add("qos.scheduler", "%s", schedulers(p))
	}
	if p.HasPrios {
		add("pfc.priorities", "%s", list(p.Prios))
	}
	for n := range 8 {
		g := p.PG[p.pgOf(n)]
		if p.Prios&(1<<n) == 0 || !g.Set {
			continue
		}
		add(fmt.Sprintf("pfc.%d", n), "%s", groupOf(g, s.Pool))
	}
	if s.anyDog() {
		w := "off"
		if d := p.Watchdog; d != nil {
			w = fmt.Sprintf("{detect: %dms, restore: %dms, poll: %dms, action: %s}", d.Detect, d.Restore, d.Poll, d.Action)
		}
		add("pfc.watchdog", "%s", w)
	}
	if p.HasLossy {
		add("lossy", "%s", limitOf(p.Lossy, "limit", s.Pool))
	}
	if p.HasQueues {
		for q := range 8 {
			add(fmt.Sprintf("ecn.%d", q), "%s", wredOf(p.WRED[q]))
		}
	}
	return out
}

func (s *Switch) anyDog() bool {
	for i := range s.Ports {
		if s.Ports[i].HasDog {
			return true
		}
	}
	return false
}

func bytesOf(n int64) string { return fmt.Sprintf("%dB", n) }

// alpha writes 2^step.
func alpha(step int) string {
	if step < 0 {
		return fmt.Sprintf("1/%d", 1<<-step)
	}
	return fmt.Sprint(1 << step)
}

// limitOf writes a threshold; static 0 means the whole pool.
func limitOf(l Limit, static string, pool int64) string {
	if l.Dynamic {
		return fmt.Sprintf("{alpha: %s}", alpha(l.Step))
	}
	if l.Static == 0 && pool > 0 {
		return fmt.Sprintf("{%s: %dB}", static, pool)
	}
	return fmt.Sprintf("{%s: %dB}", static, l.Static)
}

func groupOf(g Group, pool int64) string {
	lim := limitOf(g.Limit, "xoff", pool)
	rest := fmt.Sprintf(", guaranteed: %dB, xon_offset: %dB, headroom: %dB}", g.Guaranteed, g.XONOffset, g.Headroom)
	if g.Auto {
		rest = ", guaranteed: 0B, xon_offset: 18KB, headroom: auto}"
	}
	return strings.TrimSuffix(lim, "}") + rest
}

func wredOf(w *WRED) string {
	if w == nil {
		return "off"
	}
	pmax := fmt.Sprintf("%d.%02d", w.Percent/100, w.Percent%100)
	return fmt.Sprintf("{kmin: %dB, kmax: %dB, pmax: %s, mark: %v, drop_not_ect: %v}", w.Min, w.Max, pmax, w.ECN, w.Drop)
}

func schedulers(p *Port) string {
	var parts []string
	for q, x := range p.Sched {
		v := fmt.Sprintf("{weight: %d}", x.Weight)
		if x.Strict {
			v = "strict"
		}
		parts = append(parts, fmt.Sprintf("%d: %s", q, v))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func mapOf(m []uint8) string {
	var parts []string
	for i, v := range m {
		parts = append(parts, fmt.Sprintf("%d: %d", i, v))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func list(mask uint8) string {
	var parts []string
	for n := range 8 {
		if mask&(1<<n) != 0 {
			parts = append(parts, fmt.Sprint(n))
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// writeTree writes dotted settings as nested YAML, keys in order of first
// appearance.
func writeTree(b *bytes.Buffer, items []kv, indent int) {
	order := map[string]int{}
	for _, x := range items {
		k, _, _ := strings.Cut(x.path, ".")
		if _, ok := order[k]; !ok {
			order[k] = len(order)
		}
	}
	sort.SliceStable(items, func(i, j int) bool {
		a, _, _ := strings.Cut(items[i].path, ".")
		c, _, _ := strings.Cut(items[j].path, ".")
		return order[a] < order[c]
	})
	pad := strings.Repeat(" ", indent)
	for i := 0; i < len(items); {
		k, _, nested := strings.Cut(items[i].path, ".")
		if !nested {
			fmt.Fprintf(b, "%s%s: %s\n", pad, k, items[i].value)
			i++
			continue
		}
		var sub []kv
		for ; i < len(items) && strings.HasPrefix(items[i].path, k+"."); i++ {
			sub = append(sub, kv{items[i].path[len(k)+1:], items[i].value})
		}
		fmt.Fprintf(b, "%s%s:\n", pad, k)
		writeTree(b, sub, indent+2)
	}
}
