package topology

import (
	"embed"
	"sync"

	"github.com/rocemu/rocemu/clock"
)

//go:embed data/*.yaml
var dataFS embed.FS

// data reads one of the embedded tables. They are part of the program: a
// mistake in them is a bug.
func data(name string) *node {
	text, err := dataFS.ReadFile("data/" + name)
	if err != nil {
		panic("topology: " + err.Error())
	}
	root, errs := parseTree(name, text)
	if len(errs) > 0 {
		panic("topology: " + errs.Error())
	}
	return root
}

var (
	defaults   = sync.OnceValue(func() *node { return data("defaults.yaml") })
	asicTable  = sync.OnceValue(func() *node { return data("asics.yaml") })
	nicTable   = sync.OnceValue(func() *node { return data("nics.yaml") })
	dcqcnTable = sync.OnceValue(func() *node { return data("dcqcn.yaml") })
)

func tableNames(t *node) []string {
	out := make([]string, len(t.keys))
	for i, e := range t.keys {
		out[i] = e.key
	}
	return out
}

func asicNames() []string  { return tableNames(asicTable()) }
func nicNames() []string   { return tableNames(nicTable()) }
func dcqcnNames() []string { return tableNames(dcqcnTable()) }

// ASICs lists the switch profiles with a one-line summary each.
func ASICs() map[string]string { return summaries(asicTable()) }

// NICModels lists the RNIC personalities with a one-line summary each.
func NICModels() map[string]string { return summaries(nicTable()) }

func summaries(t *node) map[string]string {
	out := map[string]string{}
	for _, e := range t.keys {
		out[e.key] = e.val.get("summary").text
	}
	return out
}

// expandSwitch puts the profile that a layer names below the layer's own keys.
// Doing it twice changes nothing, so a resolved file loads to the same plan.
func expandSwitch(layer *node) *node {
	if a := layer.get("asic"); a != nil && a.kind == nScalar {
		layer = overlay(asicTable().path(a.text, "layer"), layer)
	}
	return layer
}

// expandNIC does the same for an RNIC layer and its DCQCN preset.
func expandNIC(layer *node) *node {
	if m := layer.get("model"); m != nil && m.kind == nScalar {
		layer = overlay(nicTable().path(m.text, "layer"), layer)
	}
	if p := layer.path("dcqcn", "preset"); p != nil && p.kind == nScalar {
		d := overlay(dcqcnTable().get(p.text), layer.get("dcqcn"))
		one := &node{kind: nMap, keys: []entry{{"dcqcn", d.line, d.col, d}}}
		layer = overlayReplace(layer, one)
	}
	return layer
}

// panelRow is a group of equal front ports.
type panelRow struct {
	rate  clock.Rate
	count int
}

// panel returns the front ports of a profile, fastest first; nil = unlimited.
func panel(asic string) []panelRow {
	p := asicTable().path(asic, "panel")
	if p == nil {
		return nil
	}
	var rows []panelRow
	for _, x := range p.items {
		rows = append(rows, panelRow{clock.Rate(x.q("rate", rateUnits)), int(x.num("count"))})
	}
	return rows
}
