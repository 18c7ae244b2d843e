package chain

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/report"
)

// Line is a chain as files and tools have it.
type Line = report.ChainLine

// Entry is the chain as the result object lists it.
func (c *Chain) Entry(d *Directory) report.Trace {
	q := d.QP(c.Conn)
	t := report.Trace{
		Flow: d.flow(c), QP: q.BQPN, PSN: c.PSN, Cause: c.Cause(), Retries: c.Rounds, Recovered: c.Recover,
		SpanIDs: make([]string, 0, len(c.Steps)+1),
	}
	for i := -1; i < len(c.Steps); i++ {
		id := c.SpanID(i)
		t.SpanIDs = append(t.SpanIDs, hex.EncodeToString(id[:]))
	}
	return t
}

// flow names the chain's flow; when its queue pair carries several and the
// records do not say which, the queue pair.
func (d *Directory) flow(c *Chain) string {
	if n := d.FlowName(c.Flow); n != "" {
		return n
	}
	q := d.QP(c.Conn)
	if q.Name != "" {
		return q.Name
	}
	if len(q.Flows) > 0 {
		return d.FlowName(q.Flows[0])
	}
	return fmt.Sprintf("%s>%s qp %d", d.RNIC(q.A), d.RNIC(q.B), q.BQPN)
}

// Line resolves the chain's numbers.
func (c *Chain) Line(d *Directory) Line {
	q := d.QP(c.Conn)
	l := Line{
		Trace: hex.EncodeToString(c.Trace[:]), Flow: d.flow(c), Line: d.Line(c.Flow),
		From: d.RNIC(q.A), To: d.RNIC(q.B), QP: q.BQPN, SrcQP: q.AQPN,
		Request: c.Request, PSN: c.PSN, Cause: c.Cause(), Outcome: c.Outcome(), Recovered: c.Recover,
		Retries: c.Rounds, Resends: c.Resends, Folded: c.Folded,
		PostedNS: report.NS(c.Posted), BeginNS: report.NS(c.Begin), EndNS: report.NS(c.End),
		Steps: make([]report.ChainStep, len(c.Steps)),
	}
	if l.Line == "" {
		l.Line = l.Flow
	}
	for i := range c.Steps {
		l.Steps[i] = c.stepLine(d, i)
	}
	return l
}

func (c *Chain) stepLine(d *Directory, i int) report.ChainStep {
	s := &c.Steps[i]
	id := c.SpanID(i)
	l := report.ChainStep{
		Span: hex.EncodeToString(id[:]), Name: s.Name(), AtNS: report.NS(s.At), SinceNS: report.NS(s.Since),
		UntilNS: report.NS(s.Until), Device: d.Device(s.Dev), Port: s.Port, PSN: s.PSN, Iter: s.Iter,
		Cause: s.Cause, Text: s.Text(d),
	}
	if s.Kind == record.Drop || s.Kind == record.Retransmit {
		l.Op = wire.Opcode(s.Op).String()
	}
	if s.Kind == record.Drop {
		l.Reason = record.Reason(s.Reason).String()
		l.Fault, _ = d.Fault(s.Fault)
	}
	return l
}

// WriteLines writes chains as JSON lines.
func WriteLines(w io.Writer, d *Directory, chains []*Chain) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, c := range chains {
		if err := e.Encode(c.Line(d)); err != nil {
			return err
		}
	}
	return nil
}

// WriteFile writes chains to a file of an output directory.
func WriteFile(path string, d *Directory, chains []*Chain) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(f, 1<<16)
	return errors.Join(WriteLines(b, d, chains), b.Flush(), f.Close())
}
