package sim

import (
	"cmp"
	"slices"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
)

// Sample is one finished request.
type Sample struct {
	Flow       int32
	Start, End clock.Time // posted, completed
	Status     report.Status
}

// Samples returns every finished request of a run that has ended, by time of
// completion, then flow. Those of a flow that are folded come as one, from their
// first start to their last end; a plan that says ListAll has none of these.
// [Options.OnBuild] hands out the fabric.
func (f *Fabric) Samples(end clock.Time) []Sample {
	var out []Sample
	for _, n := range f.Nodes {
		if n == nil {
			continue
		}
		var p report.Part
		n.Fill(&p, end)
		out = appendSamples(out, &p)
	}
	return sortSamples(out)
}

// SamplesOf is the same from the parts of a run.
func SamplesOf(parts []*report.Part) (out []Sample) {
	for _, p := range parts {
		out = appendSamples(out, p)
	}
	return sortSamples(out)
}

func appendSamples(out []Sample, p *report.Part) []Sample {
	for i := range p.Samples.Flow {
		out = append(out, Sample{p.Samples.Flow[i], p.Samples.Start[i], p.Samples.End[i], p.Samples.Status[i]})
	}
	for i := range p.Samples.Folded {
		f := &p.Samples.Folded[i]
		out = append(out, Sample{f.Flow, f.First, f.Last, report.Success})
	}
	return out
}

func sortSamples(out []Sample) []Sample {
	slices.SortStableFunc(out, func(a, b Sample) int {
		return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.Flow, b.Flow))
	})
	return out
}
