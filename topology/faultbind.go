package topology

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rocemu/rocemu/clock"
)

// BindFault looks up the names in a parsed fault: target, flow, route ends. It
// is used for the file's faults and for live ones alike.
func (p *Plan) BindFault(f *Fault) error {
	errs := p.bindFault(f)
	joined := make([]error, len(errs))
	for i, e := range errs {
		joined[i] = e
	}
	return errors.Join(joined...)
}

func (p *Plan) bindFault(f *Fault) []*faultErr {
	kind := findFaultKind(f.Kind)
	if kind == nil {
		return []*faultErr{{"kind", f.Kind, "is no kind of fault", ""}}
	}
	if f.Kind == SetKind {
		return p.bindSet(f)
	}
	var errs []*faultErr
	if e := p.bindTarget(kind, f); e != nil {
		errs = append(errs, e)
	}
	if f.Match.Flow != "" {
		if f.Match.FlowIDs = p.flowsNamed(f.Match.Flow); len(f.Match.FlowIDs) == 0 {
			errs = append(errs, &faultErr{"flow", f.Match.Flow, "no such workload line or single flow", nearest(f.Match.Flow, p.lineNames())})
		}
	}
	if to := f.Params["to"]; f.Kind == "route" && to != "" {
		if d := p.Device(to); d == nil {
			errs = append(errs, &faultErr{"to", to, "must be a device", p.nearName(to)})
		}
		for _, v := range strings.Split(f.Params["via"], ",") {
			if v == "" {
				continue
			}
			if dev, _, msg, hint := p.findPort(v); msg != "" {
				errs = append(errs, &faultErr{"via", v, msg, hint})
			} else if f.Dev >= 0 && dev != f.Dev {
				errs = append(errs, &faultErr{"via", v, "must be a port of " + p.Devices[f.Dev].Name, ""})
			}
		}
	}
	for _, k := range []string{"dst", "src"} {
		if v := f.Params[k]; v != "" {
			if d := p.Device(v); d == nil || d.Kind != RNIC {
				errs = append(errs, &faultErr{k, v, "must be an RNIC", p.nearName(v)})
			}
		}
	}
	if f.Kind == "hash" {
		if to := f.Params["to"]; to != "" && !validHash(to) {
			errs = append(errs, &faultErr{"to", to, "must be murmur3, crc32, or a seed 0..4294967295", nearest(to, []string{"murmur3", "crc32"})})
		}
	}
	return errs
}

func validHash(s string) bool {
	if s == "murmur3" || s == "crc32" {
		return true
	}
	n, bad := parseInt(s)
	return bad == nil && n >= 0 && n < 1<<32
}

// bindTarget resolves device, port, cable and, for frame faults, a flow.
func (p *Plan) bindTarget(kind *faultKind, f *Fault) *faultErr {
	name, _, hasPort := strings.Cut(f.Target, ":")
	d := p.Device(name)
	if d == nil {
		return p.bindFlowTarget(kind, f)
	}
	f.Dev, f.Port, f.Cable, f.Peer = d.ID, 0, -1, -1
	switch {
	case kind.on == onNIC && d.Kind != RNIC:
		return &faultErr{"target", f.Target, kind.name + " needs an RNIC", ""}
	case kind.on == onSwitch && d.Kind == RNIC:
		return &faultErr{"target", f.Target, kind.name + " needs a switch", ""}
	}
	if hasPort || kind.on == onCable || kind.on == onNIC && len(d.Ports) == 1 || kind.on == onPort && d.Kind == RNIC {
		if kind.on == onCable && !hasPort && len(d.Ports) > 1 {
			return &faultErr{"target", f.Target, "must be device:port; " + name + " has " + strconv.Itoa(len(d.Ports)) + " ports", f.Target + ":1"}
		}
		target := f.Target
		if !hasPort {
			target += ":1"
		}
		_, port, msg, hint := p.findPort(target)
		if msg != "" {
			return &faultErr{"target", f.Target, msg, hint}
		}
		pt := &d.Ports[port-1]
		f.Port, f.Cable, f.Peer, f.PPort = port, pt.Cable, pt.Peer, pt.PeerPort
	}
	return nil
}

// bindFlowTarget lets a frame fault name a flow: it acts where the flow
// leaves its sender.
func (p *Plan) bindFlowTarget(kind *faultKind, f *Fault) *faultErr {
	ids := p.flowsNamed(f.Target)
	if len(ids) == 0 {
		return &faultErr{"target", f.Target, "no such device, port or flow", p.nearName(f.Target)}
	}
	if !kind.match {
		return &faultErr{"target", f.Target, kind.name + " needs a device or port, not a flow", ""}
	}
	from := p.Flows[ids[0]].From
	for _, id := range ids {
		if p.Flows[id].From != from {
			return &faultErr{"target", f.Target, "has several senders; name a port and match.flow", ""}
		}
	}
	d := p.RNIC(from)
	pt := &d.Ports[0]
	f.Dev, f.Port, f.Cable, f.Peer, f.PPort = d.ID, 1, pt.Cable, pt.Peer, pt.PeerPort
	f.Match.Set, f.Match.FlowIDs = true, ids
	return nil
}

// flowsNamed returns the flows of a line, or the single flow of that name.
func (p *Plan) flowsNamed(name string) []int32 {
	base, _, single := strings.Cut(name, "[")
	for i := range p.Lines {
		if p.Lines[i].Name != base {
			continue
		}
		if !single {
			return p.Lines[i].Flows
		}
		for _, id := range p.Lines[i].Flows {
			if p.FlowName(&p.Flows[id]) == name {
				return []int32{id}
			}
		}
	}
	return nil
}

func (p *Plan) lineNames() []string {
	out := make([]string, len(p.Lines))
	for i := range p.Lines {
		out[i] = p.Lines[i].Name
	}
	return out
}

// nearName is the device or line with the nearest name, keeping a port.
func (p *Plan) nearName(s string) string {
	name, port, has := strings.Cut(s, ":")
	names := p.lineNames()
	for i := range p.Devices {
		names = append(names, p.Devices[i].Name)
	}
	n := nearest(name, names)
	if n != "" && has {
		n += ":" + port
	}
	return n
}

// faults reads the file's faults, names the unnamed and binds them.
func (r *resolver) faults() {
	r.plan.root = r.root // with what it named inlined
	seen := map[string]string{}
	count := map[string]int{}
	at := map[int]*node{}
	r.eachFault("faults", r.readFault, seen, count, at)
	r.eachFault("changes", r.readChange, seen, count, at)
	r.checkChanges(at)
}

// eachFault reads one list of faults or changes into the plan.
func (r *resolver) eachFault(list string, read func(*node, string) (*Fault, bool), seen map[string]string, count map[string]int, at map[int]*node) {
	if r.root.get(list) == nil {
		return
	}
	for i, n := range r.root.get(list).items {
		field := fmt.Sprintf("%s[%d]", list, i)
		if id := n.str("name"); id != "" {
			field = list + "." + clip(id)
		}
		f, ok := read(n, field)
		if !ok {
			continue
		}
		count[f.Kind]++
		if f.Name == "" {
			f.Name = f.Kind + "-" + strconv.Itoa(count[f.Kind])
		}
		if old, dup := seen[f.Name]; dup {
			r.fail(n, field+".name", f.Name, "name is taken by the fault at "+old, "")
			continue
		}
		seen[f.Name] = n.pos()
		f.NoAt, f.Pos = false, n.pos()
		for _, e := range r.plan.bindFault(f) {
			r.failFault(n, field, e)
		}
		at[len(r.plan.Faults)] = n
		r.plan.Faults = append(r.plan.Faults, *f)
	}
}

func (r *resolver) failFault(n *node, field string, e *faultErr) {
	at := n
	if v := n.get(e.key); v != nil {
		at = v
	} else if v := n.path("match", e.key); v != nil {
		at = v
	}
	key := func(k string) said { return said{key: k, text: text(n.get(k)), n: n.get(k), path: join(field, k)} }
	msg := e.msg
	switch kind := n.get("kind"); {
	case e.msg == forOrCount && n.kind == nMap:
		r.contradict(n, field, e.msg, "", key("count"), key("for"))
		return
	case kind != nil && e.key != "kind" && kind.file != at.file: // what a key takes depends on the kind
		msg += r.origins(key("kind"))
	}
	r.fail(at, join(field, e.key), e.value, msg, e.hint)
}

// readFault turns either form into a fault.
func (r *resolver) readFault(n *node, field string) (*Fault, bool) {
	var f *Fault
	var errs []*faultErr
	switch n.kind {
	case nScalar:
		f, errs = parseFaultText(n.text)
	case nMap:
		if n.maimed() {
			return nil, false
		}
		if !n.has("name") {
			r.fail(n, field+".name", "", "a fault written as a mapping needs a name", "")
		}
		kv := [][2]string{{"kind", n.str("kind")}}
		for _, e := range n.keys {
			switch {
			case e.key == "kind" || e.val.kind == nNull:
			case e.key == "match":
				for _, m := range e.val.keys {
					if slices.Contains(matchFields, m.key) { // else it is told
						kv = append(kv, [2]string{"match." + m.key, text(m.val)})
					}
				}
			case !slices.Contains(faultFields, e.key) && !slices.Contains(faultParamNames(), e.key): // told
			default:
				kv = append(kv, [2]string{e.key, text(e.val)})
			}
		}
		f, errs = buildFault(kv)
	default:
		return nil, false
	}
	for _, e := range errs {
		r.failFault(n, field, e)
	}
	return f, len(errs) == 0
}

// longestWait is the longest time a fault holds something up, for run.stall.
func (f *Fault) longestWait() clock.Duration {
	w := f.For
	for _, k := range []string{"hold", "period", "by", "wait"} {
		if d, err := ParseDuration(f.Params[k]); err == nil {
			w = max(w, d)
		}
	}
	return w
}
