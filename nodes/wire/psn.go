package wire

// PSN is a 24-bit circular packet sequence number (transport §2.1). Compare
// with [PSN.Diff] or [PSN.Before], never with <.
type PSN uint32

// PSNMask keeps the 24 bits of a PSN; MaxOutstanding is the most PSNs a send
// queue may have unacknowledged.
const (
	PSNMask        = 1<<24 - 1
	MaxOutstanding = 1<<23 - 1
)

// Add returns p advanced by n, modulo 2^24; n may be negative.
func (p PSN) Add(n int) PSN { return PSN(uint32(int(p)+n)) & PSNMask }

// Diff returns the signed circular distance p-q in [-2^23, 2^23-1].
func (p PSN) Diff(q PSN) int32 { return int32(uint32(p-q)<<8) >> 8 }

// Before reports whether p precedes q.
func (p PSN) Before(q PSN) bool { return p.Diff(q) < 0 }
