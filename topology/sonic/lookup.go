package sonic

import (
	"fmt"
	"strconv"
	"strings"
)

// Lookup is a pg_profile_lookup.ini: the lossless profile for a port's speed
// and cable.
type Lookup struct {
	Name string
	rows map[lookupKey]LookupRow
}

type lookupKey struct{ speed, meters int64 }

// LookupRow is one row, in bytes; Threshold is dynamic_th.
type LookupRow struct {
	Size, XON, XOFF, XONOffset int64
	Threshold                  int
}

// ParseLookup reads "speed cable size xon xoff threshold [xon_offset]" lines;
// # starts a comment. Speed is in Mb/s, cable in whole metres with m.
func ParseLookup(name string, text []byte) (*Lookup, error) {
	l := &Lookup{Name: name, rows: map[lookupKey]LookupRow{}}
	for i, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		where := fmt.Sprintf("%s:%d", name, i+1)
		if len(f) < 6 || len(f) > 7 {
			return nil, &Error{where, "", strings.TrimSpace(line), "must be: speed cable size xon xoff threshold [xon_offset]"}
		}
		meters, err := meters(f[1])
		if err != nil {
			return nil, &Error{where, "cable", f[1], "must be whole metres, such as 40m"}
		}
		var v [7]int64
		for k, s := range f {
			if k == 1 {
				continue
			}
			if v[k], err = strconv.ParseInt(s, 10, 64); err != nil || v[k] < 0 && k != 5 {
				return nil, &Error{where, [...]string{"speed", "", "size", "xon", "xoff", "threshold", "xon_offset"}[k], s, "must be a whole number"}
			}
		}
		if v[5] < -8 || v[5] > 7 {
			return nil, &Error{where, "threshold", f[5], "must be -8..7: alpha is 2^threshold"}
		}
		key := lookupKey{v[0], meters}
		if _, dup := l.rows[key]; dup {
			return nil, &Error{where, "", strings.TrimSpace(line), fmt.Sprintf("speed %d with cable %dm is given twice", key.speed, key.meters)}
		}
		l.rows[key] = LookupRow{Size: v[2], XON: v[3], XOFF: v[4], Threshold: int(v[5]), XONOffset: v[6]}
	}
	if len(l.rows) == 0 {
		return nil, &Error{name, "", "", "has no rows"}
	}
	return l, nil
}

// meters reads a cable length such as 40m.
func meters(s string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSuffix(s, "m"), 10, 64)
	if err != nil || n < 0 || !strings.HasSuffix(s, "m") {
		return 0, fmt.Errorf("cable length %q: must be whole metres, such as 40m", s)
	}
	return n, nil
}

// Row returns the profile of a speed in Mb/s and a cable in metres; the error
// names both when there is none.
func (l *Lookup) Row(speed, meters int64) (LookupRow, error) {
	if r, ok := l.rows[lookupKey{speed, meters}]; ok {
		return r, nil
	}
	return LookupRow{}, &Error{l.Name, "", "", fmt.Sprintf("no row for speed %d and cable %dm (profile %s)", speed, meters, profileName(speed, meters))}
}

// Len is the number of rows.
func (l *Lookup) Len() int { return len(l.rows) }

// profileName is the name SONiC gives a profile made of a row.
func profileName(speed, meters int64) string {
	return fmt.Sprintf("pg_lossless_%d_%dm_profile", speed, meters)
}
