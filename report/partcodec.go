package report

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
)

// partWire is a Part as it travels: counters with maps inside as JSON, whose
// key order is fixed, so that equal parts have equal bytes.
type partWire struct {
	Part       Part
	RNIC, Swch []byte
}

// EncodeParts writes parts canonically, as one stream: it says once what a part
// is made of, which takes longer to read than most parts.
func EncodeParts(parts []*Part) ([]byte, error) {
	var b bytes.Buffer
	enc := gob.NewEncoder(&b)
	if err := enc.Encode(len(parts)); err != nil {
		return nil, err
	}
	for _, p := range parts {
		if err := p.encode(enc); err != nil {
			return nil, fmt.Errorf("part of %s: %w", p.Device, err)
		}
	}
	return b.Bytes(), nil
}

func (p *Part) encode(enc *gob.Encoder) (err error) {
	w := partWire{Part: *p}
	if p.RNIC != nil {
		if w.RNIC, err = json.Marshal(p.RNIC); err != nil {
			return err
		}
	}
	if p.Switch != nil {
		if w.Swch, err = json.Marshal(p.Switch); err != nil {
			return err
		}
	}
	w.Part.RNIC, w.Part.Switch = nil, nil
	return enc.Encode(&w)
}

// DecodeParts reads what EncodeParts wrote.
func DecodeParts(b []byte) ([]*Part, error) {
	r := bytes.NewReader(b)
	dec := gob.NewDecoder(r)
	n := 0
	if err := dec.Decode(&n); err != nil || n < 0 || n > len(b) {
		return nil, errors.New("malformed parts of a result")
	}
	parts := make([]*Part, n)
	for i := range parts {
		var err error
		if parts[i], err = decodePart(dec); err != nil {
			return nil, fmt.Errorf("part %d of %d of a result: %w", i+1, n, err)
		}
	}
	if r.Len() > 0 {
		return nil, fmt.Errorf("%d bytes after the last part of a result", r.Len())
	}
	return parts, nil
}

func decodePart(dec *gob.Decoder) (*Part, error) {
	var w partWire
	if err := dec.Decode(&w); err != nil {
		return nil, err
	}
	if w.RNIC != nil {
		w.Part.RNIC = new(RNICCounters)
		if err := json.Unmarshal(w.RNIC, w.Part.RNIC); err != nil {
			return nil, err
		}
	}
	if w.Swch != nil {
		w.Part.Switch = new(SwitchCounters)
		if err := json.Unmarshal(w.Swch, w.Part.Switch); err != nil {
			return nil, err
		}
	}
	return &w.Part, nil
}
