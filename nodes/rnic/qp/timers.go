package qp

import (
	"fmt"
	"sort"

	"github.com/rocemu/rocemu/clock"
)

// AckUnit is the unit of the local ACK timeout: 4.096 us.
const AckUnit = 4096 * clock.Nanosecond

// AckTimeout returns T = 4.096 us × 2^n; n = 0 disables the timer (§3.1).
func AckTimeout(n uint8) clock.Duration {
	if n == 0 {
		return 0
	}
	return AckUnit << min(n, 31)
}

// rnrTable is the minimum wait of each RNR timer code, in 10 us (IBTA table
// 45, transport §3.3).
var rnrTable = [32]uint32{
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
}

// RNRWait decodes an RNR timer code: the table, or the article's code ×
// 4.096 us (transport §4 row 15a).
func RNRWait(code uint8, linear bool) clock.Duration {
	if linear {
		return AckUnit * clock.Duration(code&31)
	}
	return clock.Duration(rnrTable[code&31]) * 10 * clock.Microsecond
}

// creditTable decodes the credit codes 0..30 (transport §2.2).
var creditTable = [31]uint32{
	0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
	1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
}

// creditCode returns the code of the largest entry not above n.
func creditCode(n uint32) uint8 {
	i := sort.Search(len(creditTable), func(i int) bool { return creditTable[i] > n })
	return uint8(i - 1)
}

// Vendor names a rule by which a device turns the exponent into a timeout
// (transport §3.4).
type Vendor uint8

// Vendor rules.
const (
	VendorIBTA  Vendor = iota // 4.096 us × 2^n
	VendorQEDR                // 1 << max(n-8, 0) ms
	VendorHIP08               // n at most 20
)

// VendorTimeout returns the timeout v makes of exponent n.
func VendorTimeout(v Vendor, n uint8) (clock.Duration, error) {
	if n > 31 {
		return 0, fmt.Errorf("qp: timeout %d: allowed 0..31", n)
	}
	switch {
	case n == 0:
		return 0, nil
	case v == VendorQEDR:
		return clock.Millisecond << (max(n, 8) - 8), nil
	case v == VendorHIP08 && n > 20:
		return 0, fmt.Errorf("qp: timeout %d: hip08 allows 0..20", n)
	}
	return AckTimeout(n), nil
}

// TimeoutMode says how path lifetime and ACK delay become a timeout
// (transport §4 row 5), in the plan's order.
type TimeoutMode uint8

// Timeout modes.
const (
	TimeoutIBTA TimeoutMode = iota // the QP's own exponent
	TimeoutLinux
	TimeoutExact
	TimeoutArticle
)

// TimeoutParams are the inputs of ResolveTimeout.
type TimeoutParams struct {
	Mode       TimeoutMode
	Vendor     Vendor
	Exponent   uint8 // the QP attribute, mode IBTA
	PacketLife uint8 // exponents of 4.096 us, the other modes
	AckDelay   uint8
	Floor      clock.Duration // smallest timeout the device keeps, 0 = none
}

// TimeoutValue is an effective timeout: Asked before the floor.
type TimeoutValue struct {
	Asked, T clock.Duration
	Clamped  bool
}

// ResolveTimeout returns the timeout in force under p.
func ResolveTimeout(p TimeoutParams) (TimeoutValue, error) {
	var asked clock.Duration
	var err error
	switch p.Mode {
	case TimeoutLinux:
		asked = AckTimeout(CMLinux(p.AckDelay, p.PacketLife))
	case TimeoutExact:
		asked = CMExact(p.AckDelay, p.PacketLife)
	case TimeoutArticle:
		asked = CMArticle(p.AckDelay, p.PacketLife)
	default:
		asked, err = VendorTimeout(p.Vendor, p.Exponent)
	}
	v := TimeoutValue{Asked: asked, T: asked}
	if asked > 0 && asked < p.Floor {
		v.T, v.Clamped = p.Floor, true
	}
	return v, err
}
