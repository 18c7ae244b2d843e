package sweep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Goal is what a sweep looks for.
type Goal string

// Goals.
const (
	SmallestBuffer Goal = "smallest-buffer-without-loss"
	LowestP99      Goal = "lowest-p99"
	HighestGoodput Goal = "highest-goodput"
	LeastPause     Goal = "least-pause"
	// ShortestCompletion is of the workload as a whole, [Metrics.Completion].
	ShortestCompletion Goal = "shortest-completion"
)

// Goals are the words that --goal takes.
var Goals = []Goal{SmallestBuffer, LowestP99, HighestGoodput, LeastPause, ShortestCompletion}

// ParseGoal checks a word; "" is no goal.
func ParseGoal(s string) (Goal, error) {
	if s == "" || slices.Contains(Goals, Goal(s)) {
		return Goal(s), nil
	}
	words := make([]string, len(Goals))
	for i, g := range Goals {
		words[i] = string(g)
	}
	return "", fmt.Errorf("--goal %q: allowed %s", s, strings.Join(words, ", "))
}

// memory is the axis that says how much buffer a point has, -1 for none.
func memory(axes []Axis) int {
	for _, end := range []string{"buffer.size", "buffer", "headroom", "headroom_pool", "cap_per_pg", "guaranteed", "xoff"} {
		for i, a := range axes {
			if strings.HasSuffix(a.Path, end) {
				if _, err := parseQuantity(a.Values[0]); err == nil {
					return i
				}
			}
		}
	}
	return -1
}

// bytesOf is a size as a number; words such as auto are the largest.
func bytesOf(v string) float64 {
	q, err := parseQuantity(v)
	if err != nil {
		return 1 << 60
	}
	f, _ := q.v.Float64()
	return f
}

// Mark sets Front and Best. The front holds the points that no other beats: at
// least as good in drops, goodput, p99 of the completion time, pause time and,
// when it varies, buffer, and better in one; pause time is no merit of a point
// with loss against one without. A point with a run that failed or
// did not finish is on no front. Best is the point of the goal: among those
// without loss if there are any.
func Mark(points []Point, axes []Axis, goal Goal) error {
	mem := memory(axes)
	if goal == SmallestBuffer && mem < 0 {
		return fmt.Errorf("--goal %s: no axis is a size of buffer, headroom or guaranteed space", goal)
	}
	cost := func(p, other *Point) []float64 {
		c := []float64{float64(p.Drops), -p.Goodput.Mean, p.P99.Mean}
		if p.Drops == 0 == (other.Drops == 0) {
			c = append(c, p.Pause.Mean) // who loses frames pauses less for that
		}
		if mem >= 0 {
			c = append(c, bytesOf(p.Values[mem]))
		}
		return c
	}
	for i := range points {
		p := &points[i]
		p.Front = p.OK
		for k := range points {
			if p.Front && k != i && points[k].OK && dominates(cost(&points[k], p), cost(p, &points[k])) {
				p.Front = false
			}
		}
	}
	if goal == "" {
		return nil
	}
	best := -1
	for i := range points {
		if p := &points[i]; p.OK && (best < 0 || better(p, &points[best], goal, mem) < 0) {
			best = i
		}
	}
	if best >= 0 && (goal != SmallestBuffer || points[best].Drops == 0) {
		points[best].Best = true
	}
	return nil
}

func dominates(a, b []float64) bool {
	less := false
	for i := range a {
		if a[i] > b[i] {
			return false
		}
		less = less || a[i] < b[i]
	}
	return less
}

// better compares two points under a goal; loss comes first, ties go to the
// lower p99, then to the higher goodput, then to the first.
func better(a, b *Point, goal Goal, mem int) int {
	loss := cmp.Compare(min(a.Drops, 1), min(b.Drops, 1))
	p99, good := cmp.Compare(a.P99.Mean, b.P99.Mean), -cmp.Compare(a.Goodput.Mean, b.Goodput.Mean)
	switch goal {
	case SmallestBuffer:
		return cmp.Or(loss, cmp.Compare(bytesOf(a.Values[mem]), bytesOf(b.Values[mem])), p99, good)
	case HighestGoodput:
		return cmp.Or(loss, good, p99)
	case LeastPause:
		return cmp.Or(loss, cmp.Compare(a.Pause.Mean, b.Pause.Mean), p99, good)
	case ShortestCompletion:
		return cmp.Or(loss, cmp.Compare(a.Completion.Mean, b.Completion.Mean), p99, good)
	}
	return cmp.Or(loss, p99, good)
}
