package topology

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/clock"
)

// TestSC34Watchdog: the defaults of a watchdog go by the number of ports, and
// values out of range are refused.
func TestSC34Watchdog(t *testing.T) {
	const text = "schema: 1\ntopology: {spines: 0, leaves: 1, servers: %d}\nswitches: {all: {buffer: {size: 1GiB}, pfc: {watchdog: {action: drop}}}}\n"
	for ports, want := range map[int][3]int{
		32: {200, 200, 200}, 33: {400, 400, 400}, 56: {400, 400, 400}, 64: {400, 400, 400}, 65: {600, 600, 600},
		128: {800, 800, 800}, 256: {1600, 1600, 1000},
	} {
		w := load(t, fmt.Sprintf(text, ports)).Device("leaf1").Ports[0].PFC.Watchdog
		ms := func(d clock.Duration) int { return int(d / clock.Millisecond) }
		if got := [3]int{ms(w.Detect), ms(w.Restore), ms(w.Poll)}; got != want {
			t.Errorf("%d ports: %v, want %v", ports, got, want)
		}
	}
	for _, set := range []string{"detect=50ms", "detect=6s", "restore=70s", "poll=50ms", "poll=2s", "detect=150ms"} {
		_, _, err := ParseBytes("f", []byte(fmt.Sprintf(text, 2)), "switches.all.pfc.watchdog."+set)
		if err == nil || !strings.Contains(err.Error(), ": switches.all.pfc.watchdog.") {
			t.Errorf("%s: %v", set, err)
		}
	}
}
