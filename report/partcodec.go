package report

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// partWire is a Part as it travels: counters with maps inside as JSON, whose
// key order is fixed, so that equal parts have equal bytes.
type partWire struct {
	Part       Part
	RNIC, Swch []byte
}

// partsGroup is how many parts are written in one go. Each stream says once
// what a part is made of, which takes longer to read than most parts; several
// of them can be read side by side.
const partsGroup = 256

// EncodeParts writes parts canonically.
func EncodeParts(parts []*Part) ([]byte, error) {
	var out []byte
	var b bytes.Buffer
	for len(parts) > 0 {
		n := min(len(parts), partsGroup)
		b.Reset()
		enc := gob.NewEncoder(&b)
		for _, p := range parts[:n] {
			if err := p.encode(enc); err != nil {
				return nil, fmt.Errorf("part of %s: %w", p.Device, err)
			}
		}
		out = binary.LittleEndian.AppendUint32(out, uint32(n))
		out = binary.LittleEndian.AppendUint32(out, uint32(b.Len()))
		out = append(out, b.Bytes()...)
		parts = parts[n:]
	}
	return out, nil
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

var errParts = errors.New("malformed parts of a result")

// DecodeParts reads what EncodeParts wrote.
func DecodeParts(b []byte) ([]*Part, error) {
	var groups [][]*Part
	var streams [][]byte
	for len(b) > 0 {
		if len(b) < 8 {
			return nil, errParts
		}
		n, size := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		if b = b[8:]; n > partsGroup || uint64(size) > uint64(len(b)) {
			return nil, errParts
		}
		groups, streams, b = append(groups, make([]*Part, n)), append(streams, b[:size]), b[size:]
	}
	errs := make([]error, len(groups))
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i := range groups {
		room <- struct{}{}
		wg.Go(func() {
			errs[i] = decodeGroup(groups[i], streams[i])
			<-room
		})
	}
	wg.Wait()
	var parts []*Part
	for _, g := range groups {
		parts = append(parts, g...)
	}
	return parts, errors.Join(errs...)
}

func decodeGroup(to []*Part, b []byte) error {
	r := bytes.NewReader(b)
	dec := gob.NewDecoder(r)
	for i := range to {
		var err error
		if to[i], err = decodePart(dec); err != nil {
			return fmt.Errorf("part of a result: %w", err)
		}
	}
	if r.Len() > 0 {
		return errParts
	}
	return nil
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
