package split

import (
	"encoding/json"
	"errors"
	"os"

	"github.com/rocemu/rocemu/report"
)

// FileName is the splits' file in an output directory, one a line.
const FileName = "splits.jsonl"

type line struct {
	Flow  string     `json:"flow"`
	Total report.NS  `json:"total_ns"`
	Parts []linePart `json:"parts"`
}

type linePart struct {
	Name string    `json:"name"`
	Span report.NS `json:"span_ns"`
}

// WriteFile writes splits with the flows' names.
func WriteFile(path string, splits []Split, name func(flow int32) string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	e := json.NewEncoder(f)
	e.SetEscapeHTML(false)
	for _, s := range splits {
		l := line{Flow: name(s.Flow), Total: report.NS(s.End.Sub(s.Start))}
		for i, d := range s.Parts {
			l.Parts = append(l.Parts, linePart{Names[i], report.NS(d)})
		}
		err = errors.Join(err, e.Encode(l))
	}
	return errors.Join(err, f.Close())
}
