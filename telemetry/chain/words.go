package chain

import (
	"fmt"

	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
)

// statusNames are completion statuses by their ib_verbs numbers.
var statusNames = [...]string{
	"success", "loc_len_err", "loc_qp_op_err", "loc_eec_op_err", "loc_prot_err", "wr_flush_err", "mw_bind_err", "bad_resp_err",
	"loc_access_err", "rem_inv_req_err", "rem_access_err", "rem_op_err", "retry_exc_err", "rnr_retry_exc_err",
}

// StatusName returns the name of a completion status.
func StatusName(n uint8) string {
	if int(n) < len(statusNames) {
		return statusNames[n]
	}
	return fmt.Sprintf("status_%d", n)
}

// kindWords name steps; they are the span names too.
var kindWords = map[record.Kind]string{
	record.Drop: "loss", record.OutOfSeq: "gap", record.NakSent: "nak sent", record.NakRecv: "nak",
	record.RnrSent: "rnr sent", record.RnrRecv: "rnr wait", record.ImpliedNak: "implied nak", record.Timeout: "timeout",
	record.Retransmit: "retransmit", record.Rewind: "go back", record.ReqDone: "recovery", record.QPError: "error",
	record.Migrate: "migrate",
}

// Name returns the step's name. A completion in error is an error.
func (s *Step) Name() string {
	if s.Kind == record.ReqDone && s.Y != 0 {
		return "error"
	}
	return kindWords[s.Kind]
}

// Text describes the step in words, without time and device.
func (s *Step) Text(d *Directory) string {
	switch s.Kind {
	case record.Drop:
		t := fmt.Sprintf("%v PSN %d lost: %v", wire.Opcode(s.Op), s.PSN, record.Reason(s.Reason))
		if name, kind := d.Fault(s.Fault); name != "" {
			t += fmt.Sprintf(" %s (%s)", name, kind)
		}
		if s.Port != 0 {
			t += fmt.Sprintf(", port %d", s.Port)
		}
		if s.X > 0 {
			t += fmt.Sprintf(", %d B queued", s.X)
		}
		return t
	case record.OutOfSeq:
		return fmt.Sprintf("gap: expected PSN %d, PSN %d came", s.PSN, s.X)
	case record.NakSent:
		return fmt.Sprintf("NAK sent for PSN %d, syndrome 0x%02x", s.PSN, s.Reason)
	case record.NakRecv:
		return fmt.Sprintf("NAK received for PSN %d, syndrome 0x%02x", s.PSN, s.Reason)
	case record.RnrSent:
		return fmt.Sprintf("RNR NAK sent for PSN %d, timer code %d", s.PSN, s.X)
	case record.RnrRecv:
		return fmt.Sprintf("RNR NAK received for PSN %d, wait %v", s.PSN, s.Until.Sub(s.At))
	case record.ImpliedNak:
		return fmt.Sprintf("implied NAK: response PSN %d missing", s.PSN)
	case record.Timeout:
		return fmt.Sprintf("ACK timeout, oldest unacknowledged PSN %d, %d retries left", s.PSN, s.X)
	case record.Rewind:
		return fmt.Sprintf("go back to PSN %d from %d", s.PSN, s.X)
	case record.Retransmit:
		return fmt.Sprintf("%v PSN %d sent again (transmission %d)", wire.Opcode(s.Op), s.PSN, s.Iter)
	case record.QPError:
		return "queue pair in error: " + StatusName(s.Reason)
	case record.Migrate:
		return "path migration"
	case record.ReqDone:
		if s.Y != 0 {
			return fmt.Sprintf("request %d ended: %s", s.X, StatusName(uint8(s.Y)))
		}
		return fmt.Sprintf("request %d completed", s.X)
	}
	return s.Name()
}

// Cause names what set the chain off: the reason of its first loss as in
// drops_by_reason, or the first sign when no loss was recorded.
func (c *Chain) Cause() string {
	for i := range c.Steps {
		if c.Steps[i].Kind == record.Drop {
			return record.Reason(c.Steps[i].Reason).String()
		}
	}
	for i := range c.Steps {
		switch c.Steps[i].Kind {
		case record.RnrSent, record.RnrRecv:
			return "rnr"
		case record.Timeout:
			return "timeout"
		case record.ImpliedNak:
			return "implied_nak"
		case record.OutOfSeq, record.NakSent, record.NakRecv:
			return "out_of_sequence"
		}
	}
	return "unknown"
}

// Outcome says in a word how the chain ended.
func (c *Chain) Outcome() string {
	switch {
	case !c.Ended:
		return "unfinished"
	case c.Status != 0:
		return StatusName(c.Status)
	case c.Recover:
		return "recovered"
	}
	return "failed"
}
