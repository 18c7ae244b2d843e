package actors

import "math/bits"

func trailing(b uint64) int { return bits.TrailingZeros64(b) }
