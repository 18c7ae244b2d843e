package sweep

import (
	"context"
	"encoding/hex"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/rocemu/rocemu/topology"
)

// Loader resolves the fabric with further settings ("path=value") and a seed,
// nil for the file's own.
type Loader func(sets []string, seed *uint64) (*topology.Plan, error)

// Run is one run of a point.
type Run struct {
	Seed uint64 `json:"seed"`
	Metrics
}

// Point is one combination of values.
type Point struct {
	Values []string `json:"values"` // parallel to the axes
	Runs   []Run    `json:"runs"`
	OK     bool     `json:"ok"` // every run complete, every flow delivered
	// Invalid is why no fabric can be made of these values together; nothing ran.
	Invalid string `json:"invalid,omitempty"`
	Note    string `json:"note,omitempty"`
	// Over the seeds: spreads, sums and maxima.
	Goodput    Spread `json:"goodput_bps"`
	P50        Spread `json:"fct_p50_ns"`
	P99        Spread `json:"fct_p99_ns"`
	Completion Spread `json:"completion_ns"`
	Pause      Spread `json:"pause_share"`
	Marks      uint64 `json:"ecn_marked_frames"`
	Drops      uint64 `json:"dropped_frames"`
	Resent     uint64 `json:"retransmitted_packets"`
	Headroom   int64  `json:"headroom_watermark_bytes"`
	Queue      int64  `json:"queue_watermark_bytes"`
	Front      bool   `json:"pareto"`
	Best       bool   `json:"best"` // for the goal
}

// Grid is a sweep: every combination of the axes' values, under each seed.
type Grid struct {
	Load    Loader
	Axes    []Axis
	Seeds   int // runs a point, from the file's seed or that of an axis upwards
	Workers int // 0 = all cores
	Journal *Journal
	// Progress, when set, is called after each run with how many of all are
	// done; calls do not overlap.
	Progress func(done, all int)
}

// job is one run to do.
type job struct {
	point, seed int
	sets        []string
}

// Points is the number of combinations.
func (g *Grid) Points() int {
	n := 1
	for _, a := range g.Axes {
		if n *= len(a.Values); n > MaxPoints {
			return n
		}
	}
	return n
}

// values is combination i, the last axis fastest.
func (g *Grid) values(i int) []string {
	out := make([]string, len(g.Axes))
	for k := len(g.Axes) - 1; k >= 0; k-- {
		n := len(g.Axes[k].Values)
		out[k] = g.Axes[k].Values[i%n]
		i /= n
	}
	return out
}

func (g *Grid) sets(values []string) []string {
	out := make([]string, len(values))
	for k, v := range values {
		out[k] = g.Axes[k].Path + "=" + v
	}
	return out
}

// Check resolves the fabric itself, looks at every value by itself and finds a
// combination that is valid, so that a mistake shows before hours of runs. The
// plan of the fabric without the axes is returned.
func (g *Grid) Check() (*topology.Plan, error) {
	n := g.Points()
	if n > MaxPoints {
		return nil, fmt.Errorf("%d combinations; at most %d", n, MaxPoints)
	}
	base, err := g.Load(nil, nil)
	if err != nil {
		return nil, err
	}
	for _, ax := range g.Axes {
		for _, v := range ax.Values {
			err := base.CheckSet(ax.Path + "=" + v)
			if _, bad := strconv.ParseUint(v, 0, 64); err == nil && ax.Path == SeedPath {
				err = bad
			}
			if err != nil {
				return nil, fmt.Errorf("--vary %s=%s: %w", ax.Path, v, err)
			}
		}
	}
	var first error
	for i := range n {
		_, err := g.Load(g.sets(g.values(i)), nil)
		if err == nil {
			return base, nil
		}
		if first == nil {
			first = fmt.Errorf("--vary %s: %w", strings.Join(g.sets(g.values(i)), " --vary "), err)
		}
	}
	if n > 1 {
		first = fmt.Errorf("none of %d combinations is valid; the first: %w", n, first)
	}
	return nil, first
}

// seed is the first seed of a point: that of the axis if the seed varies.
func (g *Grid) seed(base uint64, values []string) uint64 {
	for k, ax := range g.Axes {
		if ax.Path == SeedPath {
			base, _ = strconv.ParseUint(values[k], 0, 64) // checked
		}
	}
	return base
}

// Do runs the grid. On cancellation it returns the error; what the journal has
// by then is used by the next run.
func (g *Grid) Do(ctx context.Context) ([]Point, error) {
	base, err := g.Check()
	if err != nil {
		return nil, err
	}
	points := make([]Point, g.Points())
	var jobs []job
	for i := range points {
		points[i].Values = g.values(i)
		points[i].Runs = make([]Run, max(g.Seeds, 1))
		for s := range points[i].Runs {
			points[i].Runs[s].Seed = g.seed(base.Seed, points[i].Values) + uint64(s)
			jobs = append(jobs, job{i, s, g.sets(points[i].Values)})
		}
	}
	err = g.each(ctx, jobs, func(j job) error {
		p := &points[j.point]
		m, err := g.one(ctx, j.sets, p.Runs[j.seed].Seed)
		if err != nil {
			return fmt.Errorf("%v: %w", j.sets, err)
		}
		p.Runs[j.seed].Metrics = m
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range points {
		points[i].summarise()
	}
	return points, nil
}

// each does jobs on all cores, one worker each; the first error stops the rest.
func (g *Grid) each(ctx context.Context, jobs []job, do func(job) error) error {
	var mu sync.Mutex
	done := 0
	return Parallel(ctx, g.Workers, len(jobs), func(i int) error {
		if err := do(jobs[i]); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		done++
		if g.Progress != nil {
			g.Progress(done, len(jobs))
		}
		return nil
	})
}

// Parallel calls do(0) to do(n-1) on so many goroutines (0 = all cores); the
// first error, or the end of ctx, keeps the rest from starting.
func Parallel(ctx context.Context, workers, n int, do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					cancel(err)
				}
			}
		})
	}
feed:
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// one does a run, or takes it from the journal.
func (g *Grid) one(ctx context.Context, sets []string, seed uint64) (Metrics, error) {
	plan, err := g.Load(sets, &seed)
	if err != nil {
		why, _, _ := strings.Cut(err.Error(), "\n")
		return Metrics{Verdict: invalid + why}, nil // a combination that cannot be built is a row, not an end
	}
	key := hex.EncodeToString(plan.Hash[:])
	if m, ok := g.Journal.find(key); ok {
		return m, nil
	}
	m, err := Simulate(ctx, plan)
	if err != nil {
		return m, err
	}
	return m, g.Journal.add(key, &m)
}
