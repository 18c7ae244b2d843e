package otlp

import (
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/telemetry/chain"
)

// The attributes, as docs/telemetry.md lists them.
var (
	vtPS, durPS, foldedSteps = key("emu.vt_ps"), key("emu.dur_ps"), key("emu.folded_steps")
	linkKind                 = key("emu.link")

	netDevice, netPort, netPriority = key("net.device"), key("net.port"), key("net.priority")

	rdmaFlow, rdmaRequest, rdmaSrc, rdmaDst = key("rdma.flow"), key("rdma.request"), key("rdma.src"), key("rdma.dst")
	rdmaQPN, rdmaSrcQPN, rdmaPSN            = key("rdma.qpn"), key("rdma.src_qpn"), key("rdma.psn")
	rdmaCause, rdmaStatus                   = key("rdma.cause"), key("rdma.status")
	rdmaRetry, rdmaResent                   = key("rdma.retry"), key("rdma.retransmitted_packets")
	rdmaOpcode, rdmaTransmission            = key("rdma.opcode"), key("rdma.transmission")
	rdmaReceived, rdmaFrom, rdmaSyndrome    = key("rdma.psn_received"), key("rdma.psn_from"), key("rdma.syndrome")
	rdmaRNRTimer, rdmaRetriesLeft           = key("rdma.rnr_timer"), key("rdma.retries_left")

	dropReason, queueBytes        = key("drop.reason"), key("queue.bytes")
	faultName, faultKind, faultID = key("fault.name"), key("fault.kind"), key("fault.id")
)

// attributes appends those of one step.
func (p *packer) attributes(b []byte, s *chain.Step) []byte {
	const tag = spanAttributes
	b = netDevice.text(b, tag, p.dir.Device(s.Dev))
	b = rdmaQPN.number(b, tag, int64(s.QPN))
	b = rdmaPSN.number(b, tag, int64(s.PSN))
	if s.Port != 0 {
		b = netPort.number(b, tag, int64(s.Port))
	}
	switch s.Kind {
	case record.Drop:
		return p.loss(b, s)
	case record.OutOfSeq:
		return rdmaReceived.number(b, tag, s.X)
	case record.NakSent, record.NakRecv:
		return rdmaSyndrome.number(b, tag, int64(s.Reason))
	case record.RnrSent:
		return rdmaRNRTimer.number(b, tag, s.X)
	case record.Timeout:
		return rdmaRetriesLeft.number(b, tag, s.X)
	case record.Rewind:
		return rdmaFrom.number(b, tag, s.X)
	case record.Retransmit:
		b = rdmaOpcode.text(b, tag, wire.Opcode(s.Op).String())
		return rdmaTransmission.number(b, tag, int64(s.Iter))
	case record.ReqDone:
		return rdmaStatus.text(b, tag, chain.StatusName(uint8(s.Y)))
	case record.QPError:
		return rdmaStatus.text(b, tag, chain.StatusName(s.Reason))
	}
	return b
}

// loss appends the attributes of a lost frame.
func (p *packer) loss(b []byte, s *chain.Step) []byte {
	const tag = spanAttributes
	b = rdmaOpcode.text(b, tag, wire.Opcode(s.Op).String())
	b = rdmaTransmission.number(b, tag, int64(s.Iter))
	b = dropReason.text(b, tag, record.Reason(s.Reason).String())
	b = queueBytes.number(b, tag, s.X)
	b = netPriority.number(b, tag, int64(s.Prio))
	if name, kind := p.dir.Fault(s.Fault); name != "" {
		return faultKind.text(faultName.text(b, tag, name), tag, kind)
	}
	if s.Fault > 0 {
		b = faultID.number(b, tag, int64(s.Fault))
	}
	return b
}
