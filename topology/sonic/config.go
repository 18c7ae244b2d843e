// Package sonic reads and writes the configuration of SONiC switches: the
// buffer, PFC, ECN and QoS tables of config_db.json (also rendered buffers and
// qos files, flattened keys and old bracket references), and
// pg_profile_lookup.ini (switch §8.1). [Parse] gives the tables, [Config.Switch]
// what they mean for each port, [Switch.Layer] the same as settings of a fabric
// file, [Export] the way back. What is not understood is listed, never silently
// dropped.
package sonic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// maxBytes bounds a configuration file.
const maxBytes = 16 << 20

// Error is a mistake in a configuration: where, what was written, what is
// allowed.
type Error struct {
	File  string
	Where string // TABLE|key|field
	Value string
	Msg   string
}

// Error renders "file: TABLE|key|field: value "x": allowed".
func (e *Error) Error() string {
	s := e.File + ": "
	if e.Where != "" {
		s += e.Where + ": "
	}
	if e.Value != "" {
		s += fmt.Sprintf("value %q: ", clip(e.Value))
	}
	return s + e.Msg
}

func clip(s string) string {
	if len(s) > 80 {
		return s[:77] + "..."
	}
	return s
}

// entry is one row of a table.
type entry struct {
	file   string
	key    string
	fields map[string]string
	order  []string
	odd    []string // fields that are neither text nor number
}

// table keeps rows in the order of the file.
type table struct {
	rows []*entry
	at   map[string]*entry
}

// Config is the content of one device's files, uninterpreted.
type Config struct {
	Files  []string
	tables map[string]*table
	names  []string // of tables, in order of appearance
	lookup *Lookup
	errs   []error
}

// File is a named text.
type File struct {
	Name string
	Text []byte
}

// Parse reads the files of one device; later ones add to or replace rows of
// earlier ones. lookup may be nil.
func Parse(files []File, lookup *Lookup) (*Config, error) {
	c := &Config{tables: map[string]*table{}, lookup: lookup}
	for _, f := range files {
		c.Files = append(c.Files, f.Name)
		if err := c.read(f); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// read adds one file.
func (c *Config) read(f File) error {
	if len(f.Text) > maxBytes {
		return &Error{f.Name, "", "", fmt.Sprintf("has %d bytes; the limit is %d", len(f.Text), maxBytes)}
	}
	d := json.NewDecoder(bytes.NewReader(f.Text))
	d.UseNumber()
	err := object(d, func(name string) error {
		if t, key, flat := strings.Cut(name, "|"); flat {
			return c.row(d, f.Name, t, key)
		}
		return c.table(d, f.Name, name)
	})
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("text follows the closing brace")
		}
	}
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	line := 1 + bytes.Count(f.Text[:min(int(d.InputOffset()), len(f.Text))], []byte("\n"))
	return &Error{fmt.Sprintf("%s:%d", f.Name, line), "", "", "not a configuration: " + err.Error()}
}

// object calls field for each key of the JSON object that comes next.
func object(d *json.Decoder, field func(key string) error) error {
	t, err := d.Token()
	if err != nil {
		return eof(err)
	}
	if t != json.Delim('{') {
		return fmt.Errorf("want an object, got %v", t)
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return eof(err)
		}
		if err := field(t.(string)); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return eof(err)
}

func eof(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (c *Config) table(d *json.Decoder, file, name string) error {
	return object(d, func(key string) error {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return eof(err)
		}
		if raw[0] == '{' {
			sub := json.NewDecoder(bytes.NewReader(raw))
			sub.UseNumber()
			return c.row(sub, file, name, key)
		}
		// A table of plain values (such as named parameter sets) is one row.
		e := c.entry(file, name, "")
		e.take(key, raw)
		return nil
	})
}

func (c *Config) row(d *json.Decoder, file, tbl, key string) error {
	e := c.entry(file, tbl, key)
	return object(d, func(field string) error {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return eof(err)
		}
		e.take(field, raw)
		return nil
	})
}

// take stores a field's text.
func (e *entry) take(field string, raw json.RawMessage) {
	var s string
	switch {
	case raw[0] == '"':
		if json.Unmarshal(raw, &s) != nil {
			s = string(raw)
		}
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' || raw[0] == 't' || raw[0] == 'f':
		s = string(raw)
	default:
		e.odd = append(e.odd, field)
		return
	}
	if _, ok := e.fields[field]; !ok {
		e.order = append(e.order, field)
	}
	e.fields[field] = s
}

func (c *Config) entry(file, tbl, key string) *entry {
	t := c.tables[tbl]
	if t == nil {
		t = &table{at: map[string]*entry{}}
		c.tables[tbl] = t
		c.names = append(c.names, tbl)
	}
	e := t.at[key]
	if e == nil {
		e = &entry{key: key, fields: map[string]string{}}
		t.at[key] = e
		t.rows = append(t.rows, e)
	}
	e.file = file
	return e
}

// rows lists a table, nil when absent.
func (c *Config) rows(tbl string) []*entry {
	if t := c.tables[tbl]; t != nil {
		return t.rows
	}
	return nil
}

func (c *Config) has(tbl string) bool { return len(c.rows(tbl)) > 0 }

func (c *Config) fail(e *entry, tbl, field, value, msg string) {
	where := tbl
	if e != nil && e.key != "" {
		where += "|" + e.key
	}
	if field != "" {
		where += "|" + field
	}
	file := strings.Join(c.Files, ", ")
	if e != nil {
		file = e.file
	}
	c.errs = append(c.errs, &Error{file, where, value, msg})
}

// num reads a whole number within bounds; absent gives def.
func (c *Config) num(e *entry, tbl, field string, def, lo, hi int64) int64 {
	s, ok := e.fields[field]
	if !ok || s == "" {
		return def
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < lo || n > hi {
		c.fail(e, tbl, field, s, fmt.Sprintf("must be a whole number %d..%d", lo, hi))
		return def
	}
	return n
}

// ref finds the row that a field names, in the new form NAME or the old form
// [TABLE|NAME]. It is nil when the field is absent, or names nothing (an error).
func (c *Config) ref(e *entry, tbl, field, to string) *entry {
	s := e.fields[field]
	if s == "" {
		return nil
	}
	name := s
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		t, n, ok := strings.Cut(s[1:len(s)-1], "|")
		if !ok || t != to {
			c.fail(e, tbl, field, s, "must refer to a row of "+to)
			return nil
		}
		name = n
	}
	if t := c.tables[to]; t != nil && t.at[name] != nil {
		return t.at[name]
	}
	var known []string
	for _, r := range c.rows(to) {
		known = append(known, r.key)
	}
	slices.Sort(known)
	msg := "no such row of " + to
	if len(known) > 0 && len(known) <= 12 {
		msg += "; there are " + strings.Join(known, ", ")
	}
	c.fail(e, tbl, field, s, msg)
	return nil
}

// Devices interprets the files of one or several devices: a file with
// DEVICE_METADATA is a device, the others belong to every device. Without any
// such file all make one device.
func Devices(files []File, lookup *Lookup) ([]*Switch, error) {
	var own, shared []File
	for _, f := range files {
		c, err := Parse([]File{f}, nil)
		if err != nil {
			return nil, err
		}
		if c.has("DEVICE_METADATA") {
			own = append(own, f)
		} else {
			shared = append(shared, f)
		}
	}
	sets := [][]File{shared}
	if len(own) > 0 {
		sets = nil
		for _, f := range own {
			sets = append(sets, append([]File{f}, shared...))
		}
	}
	var out []*Switch
	for _, set := range sets {
		c, err := Parse(set, lookup)
		if err != nil {
			return nil, err
		}
		s, err := c.Switch()
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}
