package topology

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// Device returns the device with a name, nil when there is none.
func (p *Plan) Device(name string) *Device {
	if id, ok := p.byName[name]; ok {
		return &p.Devices[id]
	}
	return nil
}

// RNIC returns RNIC number k, from 1.
func (p *Plan) RNIC(k uint32) *Device { return &p.Devices[p.RNICs[k-1]] }

// PortName renders device:port.
func (p *Plan) PortName(dev int32, port int) string {
	return p.Devices[dev].Name + ":" + strconv.Itoa(port)
}

// FindPort reads device:port, where port is a number or a class with a number
// (leaf1:uplink2 is the second uplink). An RNIC may be named without its port 1.
func (p *Plan) FindPort(s string) (dev int32, port int, err error) {
	dev, port, msg, hint := p.findPort(s)
	if msg != "" {
		if hint != "" {
			msg += fmt.Sprintf("; did you mean %q?", hint)
		}
		return 0, 0, fmt.Errorf("port %q: %s", clip(s), msg)
	}
	return dev, port, nil
}

func cutPort(s string) (name, suffix string) {
	name, port, _ := strings.Cut(s, ":")
	return name, ":" + port
}

var portWords = map[string]PortClass{"server": ClassServer, "uplink": ClassUplink, "downlink": ClassDownlink, "core": ClassCore}

// findPort is FindPort with the mistake apart; dev is -1 when the device is
// unknown.
func (p *Plan) findPort(s string) (dev int32, port int, msg, hint string) {
	name, ps, found := strings.Cut(s, ":")
	id, ok := p.byName[name]
	if !ok {
		return -1, 0, "no such device", ""
	}
	d := &p.Devices[id]
	if !found {
		if d.Kind == RNIC {
			return id, 1, "", ""
		}
		return id, 0, "must be device:port", s + ":1"
	}
	if n, err := strconv.Atoi(ps); err == nil {
		if n < 1 || n > len(d.Ports) {
			return id, 0, fmt.Sprintf("%s has ports 1..%d", name, len(d.Ports)), ""
		}
		return id, n, "", ""
	}
	word := strings.TrimRight(ps, "0123456789")
	class, ok := portWords[word]
	n, err := strconv.Atoi(ps[len(word):])
	if !ok || err != nil {
		return id, 0, "port must be a number, or server, uplink, downlink or core with a number", ""
	}
	seen := 0
	for i := range d.Ports {
		if d.Ports[i].Class == class {
			if seen++; seen == n {
				return id, d.Ports[i].Num, "", ""
			}
		}
	}
	return id, 0, fmt.Sprintf("%s has %d ports of class %s", name, seen, word), ""
}

// nearDevice is the device whose name was probably meant, with a suffix such as
// its port; "" for none.
func (r *resolver) nearDevice(name, suffix string) string {
	names := make([]string, 0, len(r.dev))
	for k := range r.dev {
		names = append(names, k)
	}
	sort.Strings(names)
	if n := nearest(name, names); n != "" && (r.byHand(n) || !otherNumber(name, n)) {
		if suffix == ":" {
			suffix = ""
		}
		return n + suffix
	}
	return ""
}

func (r *resolver) byHand(name string) bool {
	id := int(r.dev[name])
	return id < len(r.at) && r.at[id] != nil
}

// otherNumber says that two names differ in a number of as many digits alone:
// among generated names rnic33 is no misspelling of rnic13, it is one too many.
func otherNumber(a, b string) bool {
	wa, wb := strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")
	return len(a) == len(b) && len(wa) < len(a) && wa == wb
}

// hintDevices tells whoever wrote a device's name beside all: where it goes.
func (r *resolver) hintDevices() {
	for _, e := range r.errs {
		section, name, _ := strings.Cut(e.Field, ".")
		id, ok := r.dev[name]
		if !ok || e.Value != name || section != "switches" && section != "rnics" {
			continue
		}
		right := map[bool]string{true: "rnics", false: "switches"}[r.plan.Devices[id].Kind == RNIC]
		switch {
		case strings.HasPrefix(e.File, "--set"):
			e.Hint = right + ".devices." + name
		case right == section:
			e.Hint = "devices: {" + name + ": ...}"
		default:
			e.Hint = right + ": {devices: {" + name + ": ...}}"
		}
	}
}
