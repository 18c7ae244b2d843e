package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// Journal keeps finished runs in a file, a JSON line each, under the hash of
// their plan: a sweep that was stopped goes on where it was, and a larger grid
// takes over what it shares with a former one. A nil journal keeps nothing.
type Journal struct {
	mu   sync.Mutex
	f    *os.File
	runs map[string]Metrics
	// Found is how many runs the file held when it was opened.
	Found int
}

// journalHead is the first line: runs of another build are not taken over,
// because its model may differ.
type journalHead struct {
	Journal int    `json:"sweep_journal"`
	Build   string `json:"build"`
}

type journalLine struct {
	Plan string `json:"plan"`
	Metrics
}

// OpenJournal opens or creates a journal. One that exists is refused unless
// resume is set.
func OpenJournal(path, build string, resume bool) (*Journal, error) {
	j := &Journal{runs: map[string]Metrics{}}
	old, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case !resume:
		return nil, fmt.Errorf("%s: holds the runs of an earlier sweep; --resume goes on from them, another --out starts anew", path)
	}
	whole := old[:bytes.LastIndexByte(old, '\n')+1] // a torn last line is done again
	if len(whole) > 0 {
		if err := j.read(path, build, whole); err != nil {
			return nil, err
		}
	}
	if j.f, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return nil, err
	}
	if err := j.f.Truncate(int64(len(whole))); err != nil {
		return nil, errors.Join(err, j.f.Close())
	}
	if _, err := j.f.Seek(int64(len(whole)), 0); err != nil {
		return nil, errors.Join(err, j.f.Close())
	}
	if len(whole) == 0 {
		err = j.line(journalHead{1, build})
	}
	return j, err
}

func (j *Journal) read(path, build string, text []byte) error {
	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	var h journalHead
	if err := json.Unmarshal(lines[0], &h); err != nil || h.Journal != 1 {
		return fmt.Errorf("%s:1: is not a sweep journal", path)
	}
	if h.Build != build {
		return fmt.Errorf("%s: its runs are of build %q, this is %q; choose another --out", path, h.Build, build)
	}
	for i, l := range lines[1:] {
		var x journalLine
		if err := json.Unmarshal(l, &x); err != nil || x.Plan == "" {
			return fmt.Errorf("%s:%d: is damaged: %q", path, i+2, l)
		}
		j.runs[x.Plan] = x.Metrics
	}
	j.Found = len(j.runs)
	return nil
}

func (j *Journal) line(v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = j.f.Write(append(b, '\n'))
	}
	return err
}

func (j *Journal) find(key string) (Metrics, bool) {
	if j == nil {
		return Metrics{}, false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	m, ok := j.runs[key]
	return m, ok
}

func (j *Journal) add(key string, m *Metrics) error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.runs[key] = *m
	return j.line(journalLine{key, *m})
}

// Close closes the file.
func (j *Journal) Close() error {
	if j == nil || j.f == nil {
		return nil
	}
	return j.f.Close()
}
