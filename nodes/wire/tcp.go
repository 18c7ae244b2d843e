package wire

// Segments of TCP streams. Sequence numbers are 32 bits and wrap, as on the
// wire; the ends know which 2^31 they are in. What no header field holds
// (flow, payload length, times, the SACK block) travels beside it:
//
//	A = payload bytes, or the offset of the SACK block from the acknowledgement, <<32 | sequence number
//	B = flow id<<32 | acknowledgement number
//	C = time of sending, echoed by the acknowledgement
//	D = length of the SACK block, 0 = none
const (
	FlagTCPAck = FlagSE   // a pure acknowledgement
	FlagECE    = FlagBECN // it answers a segment that came with CE
	TCPBase    = EthHeader + IPv4Header + TCPHeader + FCSSize
)

// StreamOf is the flow id of a TCP segment.
func (f *Frame) StreamOf() int32 { return int32(f.B >> 32) }

// TCPLen is L of a segment with n payload bytes.
func TCPLen(n int64) uint16 { return uint16(max(n+TCPBase, MinFrame)) }

// Unwrap returns the stream offset nearest to ref whose low 32 bits are low.
func Unwrap(ref int64, low uint32) int64 { return ref + int64(int32(low-uint32(ref))) }
