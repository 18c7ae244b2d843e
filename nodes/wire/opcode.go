package wire

// Opcode is the BTH opcode byte: service in bits 7:5, operation in 4:0
// (transport §1.8).
type Opcode uint8

// RC operations and the CNP.
const (
	SendFirst      Opcode = 0x00
	SendMiddle     Opcode = 0x01
	SendLast       Opcode = 0x02
	SendLastImm    Opcode = 0x03
	SendOnly       Opcode = 0x04
	SendOnlyImm    Opcode = 0x05
	WriteFirst     Opcode = 0x06
	WriteMiddle    Opcode = 0x07
	WriteLast      Opcode = 0x08
	WriteLastImm   Opcode = 0x09
	WriteOnly      Opcode = 0x0a
	WriteOnlyImm   Opcode = 0x0b
	ReadRequest    Opcode = 0x0c
	ReadRespFirst  Opcode = 0x0d
	ReadRespMiddle Opcode = 0x0e
	ReadRespLast   Opcode = 0x0f
	ReadRespOnly   Opcode = 0x10
	Acknowledge    Opcode = 0x11
	AtomicAck      Opcode = 0x12
	CompareSwap    Opcode = 0x13
	FetchAdd       Opcode = 0x14
	SendLastInv    Opcode = 0x16
	SendOnlyInv    Opcode = 0x17
	Flush          Opcode = 0x1c
	AtomicWrite    Opcode = 0x1d
	CNP            Opcode = 0x81
)

// IsRequest reports whether an RC opcode flows from requester to responder.
func (o Opcode) IsRequest() bool {
	return o < 0x20 && (o < ReadRespFirst || o > AtomicAck)
}

// IsResponse reports whether an RC opcode flows from responder to requester.
func (o Opcode) IsResponse() bool { return o >= ReadRespFirst && o <= AtomicAck }

// IsReadResponse reports whether o is one of the four READ response opcodes.
func (o Opcode) IsReadResponse() bool { return o >= ReadRespFirst && o <= ReadRespOnly }

// The syndrome byte of an AETH (transport §2.5).
const (
	SynACKMask      = 0x1f // 000CCCCC
	SynRNR          = 0x20 // 001TTTTT
	SynNAKSequence  = 0x60
	SynNAKInvalid   = 0x61
	SynNAKAccess    = 0x62
	SynNAKOperation = 0x63
	SynUnlimited    = 0x1f // ACK without credit information
)
