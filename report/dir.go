package report

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rocemu/rocemu/clock"
)

// SeriesRow is one sample of a series: series.csv.
type SeriesRow struct {
	At     clock.Time
	Device string
	Port   int // 0 = the device
	Metric string
	Index  string // priority, PG, queue, pool or drop reason
	Value  int64
	Unit   string
}

// Event is one line of events.jsonl.
type Event struct {
	AtNS   NS             `json:"at_ns"`
	Device string         `json:"device"`
	Kind   string         `json:"kind"`
	Fields map[string]any `json:"fields,omitempty"`
}

// Dir is an output directory.
type Dir struct{ path string }

// OpenDir creates the directory if need be and proves that files can be
// written there, so that a run does not compute for hours and then lose it.
func OpenDir(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("--out %s: cannot be created: %w", path, err)
	}
	f, err := os.CreateTemp(path, ".probe-*")
	if err != nil {
		return nil, fmt.Errorf("--out %s: not writable: %w", path, err)
	}
	_, werr := f.Write([]byte("probe"))
	if err := errors.Join(werr, f.Close(), os.Remove(f.Name())); err != nil {
		return nil, fmt.Errorf("--out %s: not writable: %w", path, err)
	}
	return &Dir{path}, nil
}

// Write writes all files of a result and names them, or says which failed.
func (d *Dir) Write(r *Result) error {
	files := []struct {
		name  string
		write func(io.Writer, *Result) error
	}{
		{"result.json", WriteJSON},
		{"flows.csv", writeFlows},
		{"series.csv", writeSeries},
		{"events.jsonl", writeEvents},
		{"fabric.resolved.yaml", writeResolved},
	}
	for _, f := range files {
		if err := d.file(f.name, func(w io.Writer) error { return f.write(w, r) }); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dir) file(name string, write func(io.Writer) error) error {
	f, err := os.Create(filepath.Join(d.path, name))
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	b := bufio.NewWriterSize(f, 1<<16)
	if err := errors.Join(write(b), b.Flush(), f.Close()); err != nil {
		return fmt.Errorf("--out: %s: %w", f.Name(), err)
	}
	return nil
}

// ReadResult reads a result from an output directory or a JSON file.
func ReadResult(path string) (*Result, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = filepath.Join(path, "result.json")
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such result; `emuctl run FILE --out DIR` writes a directory with result.json", path)
	}
	if err != nil {
		return nil, err
	}
	r := new(Result)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s: not a result, which `emuctl run FILE --out DIR` writes: %w", path, err)
	}
	if r.Schema != 1 {
		return nil, fmt.Errorf("%s: result schema %d, this program reads 1", path, r.Schema)
	}
	return r, nil
}

// writeFlows writes one row a single flow. Times are nanoseconds of virtual
// time, exact to the picosecond. bytes is the payload of completed requests,
// bytes_done adds the acknowledged part of unfinished ones; fct_ns is last end
// minus first start, slowdown the ratio of it to the time on an idle fabric.
func writeFlows(w io.Writer, r *Result) error {
	c := csv.NewWriter(w)
	c.Write([]string{ //nolint:errcheck // csv.Writer keeps the error for Error
		"flow", "from", "to", "verb", "requests", "completed", "failed", "status", "bytes", "bytes_done", "first_start_ns",
		"last_end_ns", "fct_ns", "slowdown", "goodput_bps", "retransmitted_packets", "last_progress_ns", "why",
	})
	i64 := func(n int64) string { return strconv.FormatInt(n, 10) }
	for f := range r.Rows() {
		last, fct := f.Last.NS(), f.FCT.NS()
		if f.Completed+f.Failed == 0 {
			last, fct = "", "" // nothing ended
		}
		c.Write([]string{ //nolint:errcheck // as above
			f.Name, f.From, f.To, f.Verb, i64(f.Requests), i64(f.Completed), i64(f.Failed), f.Status.String(),
			i64(f.Bytes), i64(f.BytesDone), f.First.NS(), last, fct,
			strconv.FormatFloat(f.Slowdown, 'f', -1, 64), i64(f.GoodputBPS), strconv.FormatUint(f.Retransmitted, 10),
			f.LastProgress.NS(), f.Why,
		})
	}
	c.Flush()
	return c.Error()
}

// writeSeries writes one row a sample; index is the priority, priority group
// or queue, empty when there is none. There may be millions of rows, so that
// their text is put together here; [csv.Writer] is asked for what may need
// quotes.
func writeSeries(w io.Writer, r *Result) error {
	_, err := io.WriteString(w, "time_ns,device,port,metric,index,value,unit\n")
	if r.detail().Series == nil || err != nil {
		return err
	}
	var b []byte
	at, time := clock.Time(0), clock.Time(0).NS()
	for s := range r.detail().Series {
		if s.At != at {
			at, time = s.At, s.At.NS()
		}
		b = append(append(b[:0], time...), ',')
		b = append(appendField(b, s.Device), ',')
		if s.Port > 0 {
			b = strconv.AppendInt(b, int64(s.Port), 10)
		}
		b = append(append(append(append(b, ','), s.Metric...), ','), s.Index...)
		b = strconv.AppendInt(append(b, ','), s.Value, 10)
		b = append(append(append(b, ','), s.Unit...), '\n')
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// appendField appends a field of a CSV file, in quotes where it needs them.
func appendField(b []byte, s string) []byte {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
	}
	if strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return append(b, s...)
	}
	var text bytes.Buffer
	c := csv.NewWriter(&text)
	c.Write([]string{s}) //nolint:errcheck // a buffer takes it
	c.Flush()
	return append(b, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
}

// writeEvents ends with a line of counts, so that an empty run still says so.
func writeEvents(w io.Writer, r *Result) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	counts := map[string]any{}
	for _, v := range r.detail().Events {
		n, _ := counts[v.Kind].(int)
		counts[v.Kind] = n + 1
		if err := e.Encode(v); err != nil {
			return err
		}
	}
	counts["events"] = len(r.detail().Events)
	counts["pfc_pause_frames"] = r.Totals.PauseFrames
	counts["dropped_frames"] = r.Totals.DroppedFrames
	return e.Encode(Event{AtNS: r.VirtualNS, Device: "", Kind: "end", Fields: counts})
}

func writeResolved(w io.Writer, r *Result) error {
	_, err := w.Write(r.detail().Resolved)
	return err
}

func (r *Result) detail() *Detail {
	if r.Detail == nil {
		return &Detail{}
	}
	return r.Detail
}
