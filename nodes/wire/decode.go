package wire

import "encoding/binary"

// Decode reads a frame without FCS, as captures hold it.
func Decode(b []byte) (Packet, error) {
	var p Packet
	err := p.decode(b)
	return p, err
}

// DecodeFCS reads a frame that ends with its FCS.
func DecodeFCS(b []byte) (Packet, error) {
	var p Packet
	n := len(b) - FCSSize
	if n < 0 {
		return p, short("FCS", len(b), FCSSize)
	}
	p.HasFCS, p.FCS = true, binary.LittleEndian.Uint32(b[n:])
	err := p.decode(b[:n:n])
	return p, err
}

func (p *Packet) decode(b []byte) error {
	eth, rest, err := ParseEthernet(b)
	if err != nil {
		return err
	}
	p.Eth = eth.Fields()
	for vlanTag(p.EtherType()) && p.NVLAN < len(p.VLANs) {
		v, r, err := ParseVLAN(rest)
		if err != nil {
			return at(err, len(b)-len(rest))
		}
		p.VLANs[p.NVLAN], rest = v.Fields(), r
		p.NVLAN++
	}
	off := len(b) - len(rest)
	switch p.EtherType() {
	case TypeIPv4:
		return p.decodeIPv4(rest, off)
	case TypeIPv6:
		return p.decodeIPv6(rest, off)
	case TypeRoCEv1:
		return p.decodeGRH(rest, off)
	case TypeControl:
		return p.decodeControl(rest, off)
	}
	p.Payload = rest
	return nil
}

func (p *Packet) decodeIPv4(b []byte, off int) error {
	h, body, err := ParseIPv4(b)
	if err != nil {
		return at(err, off)
	}
	p.Net, p.IPv4, p.Payload = NetIPv4, h.Fields(), body
	p.Trailer = b[len(h)+len(body):]
	if p.IPv4.Proto != ProtoUDP || p.IPv4.Frag&0x3fff != 0 {
		return nil // another protocol, or a fragment: opaque
	}
	return p.decodeUDP(body, off+len(h))
}

func (p *Packet) decodeIPv6(b []byte, off int) error {
	h, body, err := ParseIPv6(b, "IPv6")
	if err != nil {
		return at(err, off)
	}
	p.Net, p.IPv6, p.Payload = NetIPv6, h.Fields(), body
	p.Trailer = b[len(h)+len(body):]
	if p.IPv6.Next != ProtoUDP {
		return nil
	}
	return p.decodeUDP(body, off+IPv6Header)
}

func (p *Packet) decodeGRH(b []byte, off int) error {
	h, body, err := ParseIPv6(b, "GRH")
	if err != nil {
		return at(err, off)
	}
	p.Net, p.IPv6, p.Payload = NetGRH, h.Fields(), body
	p.Trailer = b[len(h)+len(body):]
	if p.IPv6.Next != ProtoIBA {
		return at(&Error{Layer: "GRH", Field: "next header", Got: int(p.IPv6.Next), Want: "0x1b", Cause: ErrUnsupported}, off)
	}
	return at(p.decodeIBA(body), off+IPv6Header)
}

func (p *Packet) decodeUDP(b []byte, off int) error {
	h, body, err := ParseUDP(b)
	if err != nil {
		return at(err, off)
	}
	p.IsUDP, p.UDP, p.Payload = true, h.Fields(), body
	if p.UDP.DstPort != RoCEPort {
		return nil
	}
	return at(p.decodeIBA(body), off+UDPHeader)
}

func (p *Packet) decodeControl(b []byte, off int) error {
	if len(b) < pauseBody {
		return at(short("MAC control", len(b), pauseBody), off)
	}
	switch binary.BigEndian.Uint16(b) {
	case ControlPFC:
		h, pad, err := ParsePFC(b)
		if err != nil {
			return at(err, off)
		}
		p.Net, p.PFC, p.Trailer = NetPFC, h.Fields(), pad
	case ControlPause:
		h, pad, err := ParsePause(b)
		if err != nil {
			return at(err, off)
		}
		p.Net, p.Quant, p.Trailer = NetPause, h.Quanta(), pad
	default:
		p.Payload = b
	}
	return nil
}

// decodeIBA reads BTH through ICRC; offsets in errors count from the BTH.
func (p *Packet) decodeIBA(b []byte) error {
	h, rest, err := ParseBTH(b)
	if err != nil {
		return err
	}
	p.BTH = h.Fields()
	if rest, err = p.decodeExt(rest); err != nil {
		return at(err, len(b)-len(rest))
	}
	pad := int(p.BTH.PadCnt)
	n := len(rest) - ICRCSize - pad
	if n < 0 {
		return at(short("payload", len(rest), pad+ICRCSize), len(b)-len(rest))
	}
	p.Payload = rest[:n:n]
	copy(p.PadByte[:pad], rest[n:])
	p.ICRC = binary.LittleEndian.Uint32(rest[n+pad:])
	p.IsRoCE = true
	return nil
}

// decodeExt reads the extension headers of the opcode. On an error the
// returned bytes start at the header that did not fit.
func (p *Packet) decodeExt(b []byte) ([]byte, error) {
	ext := p.BTH.Op.Ext()
	for bit := ExtFETH; bit != 0 && ext != 0; bit <<= 1 {
		if ext&bit == 0 {
			continue
		}
		rest, err := p.decodeOne(bit, b)
		if err != nil {
			return b, err
		}
		b, ext = rest, ext&^bit
	}
	return b, nil
}

func (p *Packet) decodeOne(bit Ext, b []byte) (rest []byte, err error) {
	switch bit {
	case ExtFETH, ExtImm, ExtIETH:
		return p.decodeWord(bit, b)
	case ExtRETH:
		h, rest, err := ParseRETH(b)
		if err == nil {
			p.RETH = h.Fields()
		}
		return rest, err
	case ExtAtomic:
		h, rest, err := ParseAtomicETH(b)
		if err == nil {
			p.Atomic = h.Fields()
		}
		return rest, err
	case ExtAETH:
		h, rest, err := ParseAETH(b)
		if err == nil {
			p.AETH = h.Fields()
		}
		return rest, err
	case ExtAtomicAck:
		h, rest, err := ParseAtomicAckETH(b)
		if err == nil {
			p.Orig = h.Original()
		}
		return rest, err
	}
	if len(b) < CNPReserved { // ExtCNP
		return nil, short("CNP", len(b), CNPReserved)
	}
	copy(p.CNP[:], b)
	return b[CNPReserved:], nil
}

func (p *Packet) decodeWord(bit Ext, b []byte) (rest []byte, err error) {
	layer, dst := "ImmDt", &p.Imm
	switch bit {
	case ExtFETH:
		layer, dst = "FETH", &p.FETH
	case ExtIETH:
		layer, dst = "IETH", &p.IETH
	}
	h, rest, err := ParseWord(b, layer)
	if err == nil {
		*dst = h.Value()
	}
	return rest, err
}
