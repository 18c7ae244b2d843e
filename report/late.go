package report

import "fmt"

// Codes of findings of faults that came too late to act on anything.
const (
	CodeFaultNeverBegan = "fault-never-began" // planned for after the run's end
	CodeFaultAfterWork  = "fault-after-work"  // began when all work had ended
)

// lateFaults remarks on the faults that the run did not live to see, and on those
// that met no traffic because there was none any more.
func (r *Result) lateFaults() {
	for name, f := range r.Faults {
		switch last, late := r.afterWork(f); {
		case r.neverBegan(f):
			r.Findings = append(r.Findings, Finding{
				Code: CodeFaultNeverBegan, Where: name,
				Text: fmt.Sprintf("%s %s was to begin at %s, but the run ended at %s: plan it earlier, or let the run go on with run.until", f.Kind, f.Target, Span(f.AtNS), Span(r.VirtualNS)),
			})
		case late:
			r.Findings = append(r.Findings, Finding{
				Code: CodeFaultAfterWork, Where: name,
				Text: fmt.Sprintf("%s %s began at %s and acted on nothing: the last request had ended at %s: plan it earlier, or let the workload go on for longer", f.Kind, f.Target, Span(f.AtNS), Span(last)),
			})
		}
	}
	SortFindings(r.Findings)
}

// neverBegan says whether a fault was planned for after the run's end.
func (r *Result) neverBegan(f *FaultResult) bool { return f.AtNS > r.VirtualNS && f.Hits == 0 }

// afterWork says whether a fault that counts hits has none because all work had
// ended when it began, and when the last of it did.
func (r *Result) afterWork(f *FaultResult) (last NS, late bool) {
	if f.Hits > 0 || !CountsHits(f.Kind) || len(r.Flows) == 0 {
		return 0, false
	}
	for _, l := range r.Flows {
		if l.Completed+l.Failed != l.Requests {
			return 0, false
		}
		last = max(last, l.LastEndNS)
	}
	return last, last < f.AtNS
}
