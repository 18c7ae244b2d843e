package wire

// SPort is the RoCEv2 UDP source port of a queue pair: the product of both
// QPNs folded to a 20-bit flow label, and that folded to 14 bits under 0xC000
// (switch §5.2). The range is 0xC000..0xFFFF, and both directions of a QP have
// the same port.
func SPort(lqpn, rqpn uint32) uint16 {
	fl := uint64(lqpn) * uint64(rqpn)
	fl ^= fl >> 20
	fl ^= fl >> 40
	return FoldFlowLabel(uint32(fl & 0xfffff))
}

// FoldFlowLabel turns a 20-bit flow label into a UDP source port (transport §1.1).
func FoldFlowLabel(fl uint32) uint16 {
	fl &= 0xfffff
	return uint16(0xc000 | fl&0x3fff ^ fl>>14)
}
