package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// UC operations (service bits 001): the RC ones without READ, ATOMIC and ACK.
// They exist in the codec only.
const (
	UCSendFirst    Opcode = 0x20
	UCSendMiddle   Opcode = 0x21
	UCSendLast     Opcode = 0x22
	UCSendLastImm  Opcode = 0x23
	UCSendOnly     Opcode = 0x24
	UCSendOnlyImm  Opcode = 0x25
	UCWriteFirst   Opcode = 0x26
	UCWriteMiddle  Opcode = 0x27
	UCWriteLast    Opcode = 0x28
	UCWriteLastImm Opcode = 0x29
	UCWriteOnly    Opcode = 0x2a
	UCWriteOnlyImm Opcode = 0x2b
)

// Ext is the set of extension headers after a BTH. On the wire they stand in
// the order of the bits, lowest first (transport §1.7).
type Ext uint8

// Extension headers.
const (
	ExtFETH Ext = 1 << iota
	ExtRETH
	ExtAtomic
	ExtAETH
	ExtAtomicAck
	ExtImm
	ExtIETH
	ExtCNP // 16 reserved bytes
)

// FETHSize is the length of a FLUSH extended header; CNPReserved that of the
// reserved bytes of a CNP.
const (
	FETHSize    = 4
	CNPReserved = 16
)

// opInfo describes one opcode.
type opInfo struct {
	name string
	ext  Ext
}

// ops is the table of transport §1.8; a zero name is an opcode the codec does
// not know, carried with its payload and no extension headers.
var ops = [256]opInfo{
	SendFirst: {"send-first", 0}, SendMiddle: {"send-middle", 0}, SendLast: {"send-last", 0},
	SendLastImm: {"send-last-imm", ExtImm}, SendOnly: {"send-only", 0}, SendOnlyImm: {"send-only-imm", ExtImm},
	WriteFirst: {"write-first", ExtRETH}, WriteMiddle: {"write-middle", 0}, WriteLast: {"write-last", 0},
	WriteLastImm: {"write-last-imm", ExtImm}, WriteOnly: {"write-only", ExtRETH},
	WriteOnlyImm: {"write-only-imm", ExtRETH | ExtImm},
	ReadRequest:  {"read-request", ExtRETH}, ReadRespFirst: {"read-response-first", ExtAETH},
	ReadRespMiddle: {"read-response-middle", 0}, ReadRespLast: {"read-response-last", ExtAETH},
	ReadRespOnly: {"read-response-only", ExtAETH}, Acknowledge: {"acknowledge", ExtAETH},
	AtomicAck: {"atomic-acknowledge", ExtAETH | ExtAtomicAck}, CompareSwap: {"compare-swap", ExtAtomic},
	FetchAdd: {"fetch-add", ExtAtomic}, SendLastInv: {"send-last-inv", ExtIETH},
	SendOnlyInv: {"send-only-inv", ExtIETH}, Flush: {"flush", ExtFETH | ExtRETH},
	AtomicWrite: {"atomic-write", ExtRETH}, CNP: {"cnp", ExtCNP},

	UCSendFirst: {"uc-send-first", 0}, UCSendMiddle: {"uc-send-middle", 0}, UCSendLast: {"uc-send-last", 0},
	UCSendLastImm: {"uc-send-last-imm", ExtImm}, UCSendOnly: {"uc-send-only", 0},
	UCSendOnlyImm: {"uc-send-only-imm", ExtImm}, UCWriteFirst: {"uc-write-first", ExtRETH},
	UCWriteMiddle: {"uc-write-middle", 0}, UCWriteLast: {"uc-write-last", 0},
	UCWriteLastImm: {"uc-write-last-imm", ExtImm}, UCWriteOnly: {"uc-write-only", ExtRETH},
	UCWriteOnlyImm: {"uc-write-only-imm", ExtRETH | ExtImm},
}

// Ext returns the extension headers of the opcode.
func (o Opcode) Ext() Ext { return ops[o].ext }

// ExtLen returns their size in bytes.
func (o Opcode) ExtLen() int { return int(extLen[o]) }

// Known reports whether the codec knows the opcode.
func (o Opcode) Known() bool { return ops[o].name != "" }

// String names the opcode as fault texts do (interface, `match`): lower case
// with hyphens, "0x15" when it has no name.
func (o Opcode) String() string {
	if n := ops[o].name; n != "" {
		return n
	}
	return fmt.Sprintf("0x%02x", uint8(o))
}

// ParseOpcode is the inverse of String. It takes any opcode as 0x00..0xff too.
func ParseOpcode(s string) (Opcode, error) {
	for i := range ops {
		if ops[i].name != "" && ops[i].name == s {
			return Opcode(i), nil
		}
	}
	if hex, ok := strings.CutPrefix(s, "0x"); ok {
		if v, err := strconv.ParseUint(hex, 16, 8); err == nil {
			return Opcode(v), nil
		}
	}
	return 0, fmt.Errorf("opcode: %q is not known, allowed: %s, or 0x00..0xff", s, strings.Join(OpcodeNames(), " "))
}

// OpcodeNames lists every name in opcode order.
func OpcodeNames() []string {
	var out []string
	for i := range ops {
		if ops[i].name != "" {
			out = append(out, ops[i].name)
		}
	}
	return out
}

// KindOf is the kind of a RoCE frame with this opcode.
func KindOf(op Opcode) Kind {
	switch op {
	case CNP:
		return KindCNP
	case Acknowledge, AtomicAck:
		return KindAck
	}
	return KindData
}

// HasPayload reports whether packets of the opcode may carry payload.
func (o Opcode) HasPayload() bool {
	switch o {
	case ReadRequest, Acknowledge, AtomicAck, CompareSwap, FetchAdd, Flush, CNP:
		return false
	}
	return true
}
