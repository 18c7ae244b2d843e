package sim

import (
	"strconv"

	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// Expectations compiles what a plan expects of its result.
func Expectations(plan *topology.Plan) (*report.Expect, error) {
	exprs := make([]report.Expectation, 0, len(plan.Expect))
	for _, e := range plan.Expect {
		exprs = append(exprs, report.Expectation{Expr: e.Expr, Pos: e.Pos})
	}
	return report.CompileExpect(exprs, names(plan))
}

// Judge applies a plan's expectations to its result.
func Judge(plan *topology.Plan, res *report.Result) error {
	x, err := Expectations(plan)
	if err != nil {
		return err
	}
	return x.Judge(res)
}

// names lists the keys that a plan's result will have, for expectations to be
// compiled against.
func names(plan *topology.Plan) report.Names {
	n := report.Names{Switches: map[string][]string{}}
	for i := range plan.Lines {
		n.Flows = append(n.Flows, plan.Lines[i].Name)
	}
	for i := range plan.Faults {
		n.Faults = append(n.Faults, plan.Faults[i].Name)
	}
	for i := range plan.Devices {
		d := &plan.Devices[i]
		if d.Kind == topology.RNIC {
			n.RNICs = append(n.RNICs, d.Name)
			continue
		}
		ports := make([]string, 0, len(d.Ports))
		for p := range d.Ports {
			ports = append(ports, strconv.Itoa(d.Ports[p].Num))
		}
		n.Switches[d.Name] = ports
	}
	return n
}
