package main

import (
	"fmt"
	"strings"

	"github.com/rocemu/rocemu/topology"
)

// labText is the fabric of quick questions (`path`, `perf`) when no file is
// given: two racks of four, everything at its default.
const labText = `schema: 1
name: lab
topology: {spines: 2, leaves: 2, servers: 4}
`

// loadLab resolves the given files, or the small default fabric.
func loadLab(files, sets []string, seed *uint64) (*topology.Plan, error) {
	if len(files) > 0 {
		plan, _, err := topology.Load(topology.LoadOptions{Files: files, Sets: sets, Seed: seed})
		return plan, err
	}
	plan, _, err := topology.Resolve([]topology.Source{{Name: "default fabric", Text: []byte(labText)}}, sets, seed, nil)
	return plan, err
}

// rnicNamed finds an RNIC's number by name.
func rnicNamed(plan *topology.Plan, name string) (uint32, error) {
	if d := plan.Device(name); d != nil && d.Kind == topology.RNIC {
		return uint32(d.Num), nil
	}
	if d := plan.Device(name); d != nil {
		return 0, fmt.Errorf("%s is a switch; an RNIC is needed here", name)
	}
	first, last := plan.RNIC(1).Name, plan.RNIC(uint32(len(plan.RNICs))).Name
	return 0, fmt.Errorf("no RNIC is named %q; there are %d, %s to %s", name, len(plan.RNICs), first, last)
}

// twoRNICs finds two different RNICs.
func twoRNICs(plan *topology.Plan, from, to string) (a, b uint32, err error) {
	if len(plan.RNICs) == 0 {
		return 0, 0, fmt.Errorf("the fabric has no RNICs")
	}
	if a, err = rnicNamed(plan, from); err != nil {
		return 0, 0, err
	}
	if b, err = rnicNamed(plan, to); err != nil {
		return 0, 0, err
	}
	if a == b {
		return 0, 0, fmt.Errorf("%s to itself: two different RNICs are needed", from)
	}
	return a, b, nil
}

// list joins words for a message: "a, b and c".
func list(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}
