package qp_test

import (
	"github.com/rocemu/rocemu/nodes/wire"
)

// Fault functions: the k-th transmission of what they name.

func isAck(f *wire.Frame) bool { return f.Op() == wire.Acknowledge && f.Syndrome()>>5 == 0 }

func drops(fs ...func(from, n int, f *wire.Frame) bool) faultFunc {
	return func(from, n int, f *wire.Frame) verdict {
		for _, x := range fs {
			if x(from, n, f) {
				return verdict{drop: true}
			}
		}
		return verdict{}
	}
}

// req is the iter-th pass of the request packet with this PSN, resp of the
// READ response or atomic answer; ack, nak, rnr the k-th of their kind.
func req(psn wire.PSN, iter int) func(int, int, *wire.Frame) bool {
	return func(from, n int, f *wire.Frame) bool { return from == 0 && f.PSN() == psn && n == iter }
}

func resp(psn wire.PSN, iter int) func(int, int, *wire.Frame) bool {
	return func(from, n int, f *wire.Frame) bool {
		return from == 1 && f.PSN() == psn && n == iter && f.Op() != wire.Acknowledge
	}
}

func ack(k uint32) func(int, int, *wire.Frame) bool {
	return func(from, n int, f *wire.Frame) bool { return from == 1 && isAck(f) && f.Index == k }
}

func nak(k uint32) func(int, int, *wire.Frame) bool {
	return func(from, n int, f *wire.Frame) bool {
		return from == 1 && f.Op() == wire.Acknowledge && f.Syndrome()>>5 == 3 && f.Index == k
	}
}

func rnr(k uint32) func(int, int, *wire.Frame) bool {
	return func(from, n int, f *wire.Frame) bool {
		return from == 1 && f.Op() == wire.Acknowledge && f.Syndrome()>>5 == 1 && f.Index == k
	}
}

type frame = wire.Frame

// readRequest forges a READ request of A with the content tag the message at
// the responder's resource would carry.
func readRequest(s *sim, psn wire.PSN, va, length uint64) wire.Frame {
	f := wire.Frame{Kind: wire.KindData, Len: uint16(wire.RoCELen(wire.ReadRequest, 0)), A: va, B: uint64(s.b.key)<<32 | length, Iter: 1}
	f.SetOp(wire.ReadRequest, 0x22)
	f.SetPSN(psn)
	f.Set(wire.FlagAckReq)
	return f
}
