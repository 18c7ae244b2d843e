// Package natsbus carries the frames of one run between processes: one batch a
// window and pair of processes over core NATS, named by (run, source,
// destination, window). NATS may lose, repeat and reorder messages; names, NAKs
// and retained batches repair that, and a gap that cannot be repaired ends the
// run with an error that names it. Repeated batches are compared: a difference
// means that determinism broke ([DivergedError]). Start at [Carrier.Exchange].
package natsbus

import (
	"github.com/nats-io/nats.go"
)

// Bus is publish and subscribe, at most once, in no order to rely on. Publish
// does not keep data after it returns. C of a subscription loses messages when
// it is not read.
type Bus interface {
	Publish(subject string, data []byte) error
	Subscribe(subject string, depth int) (Sub, error)
	// Reconnected is closed and replaced at every reconnect.
	Reconnected() <-chan struct{}
	// MaxPayload is the largest message in bytes.
	MaxPayload() int
}

// Sub is one subscription.
type Sub interface {
	C() <-chan *nats.Msg
	Close() error
}
