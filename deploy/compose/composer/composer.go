// Package composer writes Docker Compose files for a fabric: a container a
// device or a rack, NATS and coordinators around them, keys made by a one-shot
// service. It knows the fabric's devices and nothing of how they run. Start at
// [Generate].
package composer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rocemu/rocemu/topology"
)

// Unit is what one container holds.
type Unit string

// Units.
const (
	Auto      Unit = ""       // devices up to autoDevices of them, else racks
	PerDevice Unit = "device" // each RNIC, leaf, spine and core
	PerRack   Unit = "rack"   // a leaf with its RNICs; spines and cores one each
)

// Limits. A Linux bridge takes 1,024 ports; some are for NATS, coordinators and
// collectors.
const (
	autoDevices   = 40
	MaxContainers = 980
	MaxHosts      = 64
)

// Options of Generate.
type Options struct {
	Per Unit
	// NATS servers, and as many coordinators, that always run: 1, 3 or 5. 0 is 1,
	// and two more in profile ha; on three machines or more it is 3, one a machine.
	NATS    int
	Hosts   int    // machines, one file each; 0 or 1 = one
	Fabric  string // name of the fabric file beside the compose file
	Source  string // path from the compose file to this repository, to build the image; "" = the image is there
	Observe string // path from the compose file to the configuration of profile observe; "" = no such profile
}

// File is a compose file to write.
type File struct {
	Name string
	Text string
}

// group is one container's devices.
type group struct {
	name    string
	devices []string
	host    int
}

// Generate writes the compose files of a plan and their environment files.
func Generate(plan *topology.Plan, o Options) ([]File, error) {
	o.Hosts = max(o.Hosts, 1)
	if o.Hosts > MaxHosts {
		return nil, fmt.Errorf("--hosts %d: must be 1 to %d", o.Hosts, MaxHosts)
	}
	if o.NATS == 0 {
		o.NATS = 1
		if o.Hosts >= 3 {
			o.NATS = 3
		}
	}
	if o.NATS != 1 && o.NATS != 3 && o.NATS != 5 {
		return nil, fmt.Errorf("--nats %d: must be 1, 3 or 5; an even number survives no more losses than one less", o.NATS)
	}
	if o.Hosts > 1 && o.NATS > o.Hosts {
		return nil, fmt.Errorf("--nats %d on --hosts %d: a machine holds one NATS server; use --nats 1 or more machines", o.NATS, o.Hosts)
	}
	groups, err := split(plan, o)
	if err != nil {
		return nil, err
	}
	if err := distinct(groups); err != nil {
		return nil, err
	}
	if o.Hosts == 1 {
		w := &writer{plan: plan, opt: o, groups: groups}
		return []File{{"compose.yaml", w.text()}, {"ha.env", HAEnv}}, nil
	}
	var out []File
	for h := range o.Hosts {
		w := &writer{plan: plan, opt: o, host: h, groups: groups}
		out = append(out, File{hostFile(h), w.text()})
	}
	return append(out, File{"hosts.env", hostsEnv(o)}), nil
}

// reserved are the services that are no devices; nats2, coord1 and so on are
// told by their beginning.
var reserved = []string{"init", "submit", "observe", "otel", "jaeger", "prometheus", "grafana"}

// distinct refuses devices whose containers would share a name.
func distinct(groups []group) error {
	seen := map[string]string{}
	for i := range groups {
		g := &groups[i]
		n := serviceName(g.name)
		base := strings.TrimRight(n, "0123456789")
		if slices.Contains(reserved, n) || base == "nats" || base == "coord" {
			return fmt.Errorf("device %q: the compose file has a service %s already; rename the device", g.name, n)
		}
		if other, ok := seen[n]; ok {
			return fmt.Errorf("devices %q and %q: both would be container %s; rename one", other, g.name, n)
		}
		seen[n] = g.name
	}
	return nil
}

// split makes the containers and spreads them over the machines, racks first,
// each onto the machine with the fewest devices.
func split(plan *topology.Plan, o Options) ([]group, error) {
	per := o.Per
	switch per {
	case PerDevice, PerRack:
	case Auto:
		per = PerDevice
		if len(plan.Devices) > autoDevices {
			per = PerRack
		}
	default:
		return nil, fmt.Errorf("--per %q: must be device or rack", per)
	}
	groups := containers(plan, per)
	load := make([]int, o.Hosts)
	count := make([]int, o.Hosts)
	for i := range groups {
		h := 0
		for k := range load {
			if load[k] < load[h] {
				h = k
			}
		}
		groups[i].host = h
		load[h] += len(groups[i].devices)
		count[h]++
	}
	if n := slices.Max(count); n > MaxContainers {
		advice := "--per rack packs a rack into one container"
		if per == PerRack {
			advice = fmt.Sprintf("--hosts %d spreads it over machines", (len(groups)+MaxContainers-1)/MaxContainers)
		}
		return nil, fmt.Errorf("%d containers on one machine: a Docker bridge holds 1024 ports, %d of them for devices; %s", n, MaxContainers, advice)
	}
	return groups, nil
}

// containers lists the groups, switches with racks first.
func containers(plan *topology.Plan, per Unit) []group {
	var out []group
	at := map[string]int{}
	for i := range plan.Devices {
		d := &plan.Devices[i]
		name := d.Name
		if per == PerRack && d.Kind == topology.RNIC {
			name = plan.Devices[d.Ports[0].Peer].Name
		}
		k, ok := at[name]
		if !ok {
			k = len(out)
			at[name] = k
			out = append(out, group{name: name})
		}
		out[k].devices = append(out[k].devices, d.Name)
	}
	slices.SortStableFunc(out, func(a, b group) int { return len(b.devices) - len(a.devices) })
	return out
}

// serviceName is a device's name as Compose and DNS accept it.
func serviceName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, s)
}
