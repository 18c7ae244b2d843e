package report

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ChainsFile has the retransmit chains of an output directory, one [ChainLine] a
// line.
const ChainsFile = "chains.jsonl"

// ChainLine is a retransmit chain as files and tools have it, every number
// resolved to a name.
type ChainLine struct {
	Trace     string      `json:"trace_id"`
	Flow      string      `json:"flow"`
	Line      string      `json:"workload"`
	From      string      `json:"from"`
	To        string      `json:"to"`
	QP        uint32      `json:"qp"` // destination QPN of the requests
	SrcQP     uint32      `json:"src_qp"`
	Request   int64       `json:"request"` // -1 = not known
	PSN       uint32      `json:"psn"`
	Cause     string      `json:"cause"`
	Outcome   string      `json:"outcome"`
	Recovered bool        `json:"recovered"`
	Retries   int         `json:"retries"`
	Resends   int         `json:"retransmitted_packets"`
	Folded    int         `json:"folded_steps,omitempty"`
	PostedNS  NS          `json:"posted_ns"`
	BeginNS   NS          `json:"begin_ns"`
	EndNS     NS          `json:"end_ns"`
	Steps     []ChainStep `json:"steps"`
}

// ChainStep is a step of a [ChainLine].
type ChainStep struct {
	Span    string `json:"span_id"`
	Name    string `json:"name"`
	AtNS    NS     `json:"at_ns"`
	SinceNS NS     `json:"since_ns"`
	UntilNS NS     `json:"until_ns"`
	Device  string `json:"device"`
	Port    uint16 `json:"port,omitempty"`
	PSN     uint32 `json:"psn"`
	Op      string `json:"opcode,omitempty"`
	Iter    uint8  `json:"transmission,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Fault   string `json:"fault,omitempty"`
	Cause   int    `json:"cause"` // index of the step that led here, -1 = the request
	Text    string `json:"text"`
}

// ReadLines reads a file of JSON lines; none are returned when it does not exist.
func ReadLines[T any](path string) ([]T, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []T
	dec := json.NewDecoder(bufio.NewReaderSize(f, 1<<16))
	for {
		var l T
		switch err := dec.Decode(&l); {
		case err == io.EOF:
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("%s: line %d: %w", path, len(out)+1, err)
		}
		out = append(out, l)
	}
}
