package sim

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// spareHeap is how much garbage a run may make before the collector looks for
// it, and mostSlack bounds the same in percent of what lives.
const (
	spareHeap = 256 << 20
	mostSlack = 800
)

// buildSlack is the collector's setting, in percent, while a fabric is built:
// nearly all that is allocated stays.
const buildSlack = 400

// collector sets the garbage collector for a run: devices allocate next to
// nothing once they stand, and while it marks, every pointer that a frame moves
// costs several times as much. The environment's GOGC has precedence.
type collector struct {
	off   bool
	stood bool
	spare int64
}

// collecting is what the runs of this process share of it.
var collecting struct {
	sync.Mutex
	runs   int
	spare  int64 // of the runs that stand
	before int   // the setting that the first found and the last puts back
}

// Ease sets the collector for a fabric of which other processes run the rest:
// of the garbage that one process may make, each may make its part. built is
// called when the fabric stands, end when it goes.
func Ease(part, whole int) (built, end func()) {
	c := newCollector()
	c.spare = spareHeap * int64(part) / int64(max(whole, 1))
	return c.built, c.close
}

// newCollector sets it for building.
func newCollector() *collector {
	c := &collector{off: os.Getenv("GOGC") != "", spare: spareHeap}
	if c.off {
		return c
	}
	collecting.Lock()
	defer collecting.Unlock()
	before := debug.SetGCPercent(buildSlack)
	if collecting.runs++; collecting.runs == 1 {
		collecting.before = before
	}
	return c
}

// built sets it for running what lives now.
func (c *collector) built() {
	if c.off {
		return
	}
	collecting.Lock()
	defer collecting.Unlock()
	live := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(live)
	collecting.spare, c.stood = collecting.spare+c.spare, true
	debug.SetGCPercent(slack(int64(live[0].Value.Uint64()), collecting.spare))
}

// slack is the percentage that lets a heap of so many bytes grow by spare.
func slack(live, spare int64) int {
	return int(min(max(spare*100/max(live, 1), 100), mostSlack))
}

// close puts the setting back when this was the last run.
func (c *collector) close() {
	if c.off {
		return
	}
	collecting.Lock()
	defer collecting.Unlock()
	if c.stood {
		collecting.spare -= c.spare
	}
	if collecting.runs--; collecting.runs == 0 {
		debug.SetGCPercent(collecting.before)
	}
}
