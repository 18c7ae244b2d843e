// Package explain turns a result and its records into a few lines per failed
// or slow flow: what was lost, where, by what, what the transport did about it,
// and how to tell it from what looks alike. It concludes from records and
// counters only; it never guesses at what was not written down. Start at
// [Load], then [Run.Stories] and [Run.Links].
package explain

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/rocemu/rocemu/report"
)

// Run is a result with the records that were kept beside it.
type Run struct {
	Result  *report.Result
	Events  []event // in order of time
	Rows    []row   // single flows; empty when only a result file was given
	Records bool    // events.jsonl was there
}

// event is one line of events.jsonl.
type event struct {
	At     int64 // ps
	Device string
	Kind   string
	Src    string
	Dst    string
	Reason string
	Fault  string
	Port   int
	Prio   int
	PSN    int64
	QPN    int64
	Code   int64
	X, Y   int64
}

// row is what is needed of a line of flows.csv.
type row struct {
	Name, Line, From, To string
	Status, Why          string
	Completed, Failed    int64
	BytesDone            int64
}

// Load reads an output directory, or a result file alone.
func Load(path string) (*Run, error) {
	res, err := report.ReadResult(path)
	if err != nil {
		return nil, err
	}
	r := &Run{Result: res}
	if st, err := os.Stat(path); err != nil || !st.IsDir() {
		return r, nil
	}
	if err := r.readEvents(filepath.Join(path, "events.jsonl")); err != nil {
		return nil, err
	}
	return r, r.readFlows(filepath.Join(path, "flows.csv"))
}

func (r *Run) readEvents(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for n := 1; s.Scan(); n++ {
		var e report.Event
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			return fmt.Errorf("%s:%d: not an event: %w", path, n, err)
		}
		if e.Kind != "end" {
			r.Events = append(r.Events, flatten(&e))
		}
	}
	r.Records = true
	slices.SortStableFunc(r.Events, func(a, b event) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	return s.Err()
}

func flatten(e *report.Event) event {
	num := func(key string) int64 {
		v, _ := e.Fields[key].(float64)
		return int64(v)
	}
	word := func(key string) string {
		v, _ := e.Fields[key].(string)
		return v
	}
	return event{
		At: int64(e.AtNS), Device: e.Device, Kind: e.Kind, Src: word("src"), Dst: word("dst"), Reason: word("reason"),
		Fault: word("fault"), Port: int(num("port")), Prio: int(num("prio")), PSN: num("psn"), QPN: num("qpn"),
		Code: num("code"), X: num("x"), Y: num("y"),
	}
}

func (r *Run) readFlows(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil || len(all) == 0 {
		return err
	}
	col := map[string]int{}
	for i, name := range all[0] {
		col[name] = i
	}
	for _, c := range all[1:] {
		get := func(name string) string {
			if i, ok := col[name]; ok && i < len(c) {
				return c[i]
			}
			return ""
		}
		n := func(name string) int64 {
			v, _ := strconv.ParseInt(get(name), 10, 64)
			return v
		}
		x := row{
			Name: get("flow"), From: get("from"), To: get("to"), Status: get("status"), Why: get("why"),
			Completed: n("completed"), Failed: n("failed"), BytesDone: n("bytes_done"),
		}
		x.Line = lineOf(x.Name)
		r.Rows = append(r.Rows, x)
	}
	return nil
}

// lineOf cuts NAME[from>to#n] down to NAME.
func lineOf(name string) string {
	for i := range len(name) {
		if name[i] == '[' {
			return name[:i]
		}
	}
	return name
}
