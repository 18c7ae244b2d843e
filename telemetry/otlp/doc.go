// Package otlp turns retransmit chains into OpenTelemetry spans and sends them
// to a collector (OTLP over gRPC or HTTP) or a file of OTLP JSON lines. It works
// beside the run, never in it: [Exporter.Offer] does not wait, the queue is
// bounded, a dead collector opens a circuit breaker, and every chain that was
// not delivered is counted. Span ids come from the chain, times from virtual
// time, so two runs export the same spans. The attributes are listed in
// docs/telemetry.md. Start at [New].
package otlp

import (
	"time"

	"github.com/rocemu/rocemu/clock"
)

// DefaultScale is how many exported nanoseconds a virtual nanosecond becomes:
// backends end at microseconds, a hop takes hundreds of nanoseconds.
const DefaultScale = 1000

// TimeMap shows virtual time as real time: Epoch + Scale × virtual.
type TimeMap struct {
	Epoch time.Time
	Scale int64 // 0 = DefaultScale
}

// InForce returns the scale in force.
func (m TimeMap) InForce() int64 {
	if m.Scale <= 0 {
		return DefaultScale
	}
	return m.Scale
}

// At maps an instant. With a scale of 1000 or a multiple it is exact to the
// picosecond; else it rounds down to nanoseconds.
func (m TimeMap) At(t clock.Time) time.Time {
	s := m.InForce()
	ns := int64(t)/1000*s + int64(t)%1000*s/1000
	return m.Epoch.Add(time.Duration(ns))
}
