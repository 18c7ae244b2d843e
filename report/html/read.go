package html

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/rocemu/rocemu/report"
)

// Input is an output directory, read.
type Input struct {
	Result *report.Result
	Flows  []Flow
	Series map[Key][]Sample // each in order of time
	Chains []report.ChainLine
	Splits []Split
}

// Flow is a row of flows.csv.
type Flow struct {
	Name, From, To, Verb, Status, Why string
	Bytes, Goodput, Resent            int64
	FCT                               report.NS // meaningless unless Ended
	Ended                             bool      // a request of it completed or failed
	Slowdown                          float64
}

// Key names a series.
type Key struct {
	Device string
	Port   int
	Metric string
	Index  string
}

// String writes the key's place: "leaf1:3/3".
func (k Key) String() string {
	s := k.Device
	if k.Port > 0 {
		s += ":" + strconv.Itoa(k.Port)
	}
	if k.Index != "" {
		s += "/" + k.Index
	}
	return s
}

// Sample is one value, from At until the next one.
type Sample struct {
	At    float64 // ns
	Value float64
}

// Split is a flow's time by where it went; the parts add up to Total exactly.
type Split struct {
	Flow  string    `json:"flow"`
	Total report.NS `json:"total_ns"`
	Parts []Part    `json:"parts"`
}

// Part is a share of a [Split].
type Part struct {
	Name string    `json:"name"`
	Span report.NS `json:"span_ns"`
}

// Read reads an output directory. Only result.json must be there.
func Read(dir string) (*Input, error) {
	r, err := report.ReadResult(dir)
	if err != nil {
		return nil, err
	}
	in := &Input{Result: r, Series: map[Key][]Sample{}}
	if err := in.readCSV(filepath.Join(dir, "flows.csv"), in.addFlow); err != nil {
		return nil, err
	}
	if err := in.readCSV(filepath.Join(dir, "series.csv"), in.addSample); err != nil {
		return nil, err
	}
	if in.Chains, err = report.ReadLines[report.ChainLine](filepath.Join(dir, report.ChainsFile)); err != nil {
		return nil, err
	}
	in.Splits, err = report.ReadLines[Split](filepath.Join(dir, "splits.jsonl"))
	return in, err
}

// readCSV hands each row to add, by column name.
func (in *Input) readCSV(path string, add func(get func(string) string) error) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	c := csv.NewReader(bufio.NewReaderSize(f, 1<<16))
	c.ReuseRecord = true
	head, err := c.Read()
	if err == io.EOF {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	col := map[string]int{}
	for i, h := range head {
		col[h] = i
	}
	for n := 2; ; n++ {
		row, err := c.Read()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = add(func(name string) string {
				if i, ok := col[name]; ok && i < len(row) {
					return row[i]
				}
				return ""
			})
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
}

func (in *Input) addFlow(get func(string) string) error {
	f := Flow{Name: get("flow"), From: get("from"), To: get("to"), Verb: get("verb"), Status: get("status"), Why: get("why")}
	var err [5]error
	f.Bytes, err[0] = strconv.ParseInt(get("bytes"), 10, 64)
	f.Goodput, err[1] = strconv.ParseInt(get("goodput_bps"), 10, 64)
	f.Resent, err[2] = strconv.ParseInt(get("retransmitted_packets"), 10, 64)
	if fct := get("fct_ns"); fct != "" { // empty while nothing has ended
		f.Ended, err[3] = true, f.FCT.UnmarshalJSON([]byte(fct))
	}
	f.Slowdown, err[4] = strconv.ParseFloat(get("slowdown"), 64)
	in.Flows = append(in.Flows, f)
	return errors.Join(err[:]...)
}

func (in *Input) addSample(get func(string) string) error {
	k := Key{Device: get("device"), Metric: get("metric"), Index: get("index")}
	if p := get("port"); p != "" {
		n, err := strconv.Atoi(p)
		if err != nil {
			return err
		}
		k.Port = n
	}
	at, err := strconv.ParseFloat(get("time_ns"), 64)
	if err != nil {
		return err
	}
	v, err := strconv.ParseFloat(get("value"), 64)
	in.Series[k] = append(in.Series[k], Sample{at, v})
	return err
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
