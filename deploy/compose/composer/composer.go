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

// Limits. A bridge takes 1,024 ports; some are for NATS and coordinators.
const (
	autoDevices   = 40
	MaxContainers = 1000
	MaxHosts      = 64
)

// Options of Generate.
type Options struct {
	Per    Unit
	NATS   int    // NATS servers that always run: 1, 3 or 5; 0 = 1, and two more in profile ha
	Hosts  int    // machines, one file each; 0 or 1 = one
	Fabric string // name of the fabric file beside the compose file
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

// Generate writes the compose files of a plan.
func Generate(plan *topology.Plan, o Options) ([]File, error) {
	if o.NATS == 0 {
		o.NATS = 1
	}
	if o.NATS != 1 && o.NATS != 3 && o.NATS != 5 {
		return nil, fmt.Errorf("--nats %d: must be 1, 3 or 5; an even number survives no more losses than one less", o.NATS)
	}
	o.Hosts = max(o.Hosts, 1)
	if o.Hosts > MaxHosts {
		return nil, fmt.Errorf("--hosts %d: must be 1 to %d", o.Hosts, MaxHosts)
	}
	groups, err := split(plan, o)
	if err != nil {
		return nil, err
	}
	var out []File
	for h := range o.Hosts {
		name := "compose.yaml"
		if o.Hosts > 1 {
			name = fmt.Sprintf("compose-host%d.yaml", h+1)
		}
		w := &writer{plan: plan, opt: o, host: h, groups: groups}
		out = append(out, File{name, w.text()})
	}
	return out, nil
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
		return nil, fmt.Errorf("%d containers on one machine: a Docker bridge holds %d beside NATS and coordinators; %s", n, MaxContainers, advice)
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
