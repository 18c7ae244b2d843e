package sim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/topology"
)

// A saved fabric is a magic, the length of what follows, its SHA-256, and a
// zstd stream of: version, plan hash, the resolved fabric file, the faults, the
// instant, windows executed, each device's name and state, then what the run had
// told and the deadlocks it had found. Everything is bounded and checked before
// use.

const (
	saveMagic   = "ROCEMU\x00\x01"
	saveVersion = 5
	maxSaved    = 1 << 34 // bytes, unpacked
)

// Saved is a fabric at an instant of virtual time.
type Saved struct {
	At      clock.Time
	Windows uint64
	Hash    [32]byte // of the plan that ran
	Text    []byte   // its resolved fabric file
	Faults  []string // its faults, those that --chaos drew among them, as text
	devices []savedDevice
	told    []byte
	dead    []byte
}

type savedDevice struct {
	name  string
	state []byte
}

// Save takes the fabric as it stands between two windows.
func (f *Fabric) Save() *Saved {
	s := &Saved{At: f.Engine.Now(), Windows: f.Engine.Windows(), Hash: f.Plan.Hash, Text: f.Plan.Resolved(), Faults: faultTexts(f.Plan)}
	for _, d := range f.Engine.Local() {
		var w snap.Writer
		f.Engine.SnapshotDevice(d, &w)
		s.devices = append(s.devices, savedDevice{f.Plan.Devices[d].Name, w.B})
	}
	var told, dead snap.Writer
	f.told.save(&told)
	f.dead.save(&dead)
	s.told, s.dead = told.B, dead.B
	return s
}

// Restore puts a saved state into a freshly built fabric. The plan may differ
// from the one that was saved in settings ("what if from here on"), not in
// devices, ports, queue pairs, flows or faults, nor in what the saved state
// keeps. An error is [ErrUnlike].
func (f *Fabric) Restore(s *Saved) error {
	if err := f.restore(s); err != nil {
		return fmt.Errorf("%w: %s%w", ErrUnlike, s.of(f.Plan), err)
	}
	return nil
}

// ErrUnlike: a saved fabric cannot go on as the one that was asked for.
var ErrUnlike = errors.New("this fabric cannot go on from the saved one")

func (f *Fabric) restore(s *Saved) error {
	if err := s.keeps(f.Plan); err != nil {
		return err
	}
	for i := range s.devices {
		d := &s.devices[i]
		r := &snap.Reader{B: d.state}
		if err := f.Engine.RestoreDevice(int32(i), r); err != nil {
			return err
		}
		if len(r.B) != 0 {
			return fmt.Errorf("state of %s has %d bytes too many", d.name, len(r.B))
		}
	}
	f.Engine.SetClock(s.At, s.Windows)
	r := &snap.Reader{B: s.told}
	f.told.restore(r, s.At)
	if r.Err != nil {
		return fmt.Errorf("saved fabric: %w", r.Err)
	}
	return f.dead.restore(&snap.Reader{B: s.dead})
}

// Plan resolves the fabric file that was saved.
func (s *Saved) Plan() (*topology.Plan, error) {
	p, _, err := topology.LoadBytes("saved fabric", s.Text)
	return p, err
}

// RunTo executes the run until everything before t is done, and no more. It
// returns false when the run ended before.
func (f *Fabric) RunTo(ctx context.Context, t clock.Time) (bool, actors.Result, error) {
	f.Engine.HoldAt(t)
	defer f.Engine.HoldAt(0)
	res, err := f.Engine.Run(ctx)
	return err == nil && res.End == actors.Held, res, err
}

// WriteTo writes s; it implements io.WriterTo.
func (s *Saved) WriteTo(w io.Writer) (int64, error) {
	var b snap.Writer
	b.U32(saveVersion)
	b.B = append(b.B, s.Hash[:]...)
	b.Bytes(s.Text)
	b.Len(len(s.Faults))
	for _, f := range s.Faults {
		b.String(f)
	}
	b.Time(s.At)
	b.U64(s.Windows)
	b.Len(len(s.devices))
	for i := range s.devices {
		b.String(s.devices[i].name)
		b.Bytes(s.devices[i].state)
	}
	b.Bytes(s.told)
	b.Bytes(s.dead)
	z, err := zstd.NewWriter(nil)
	if err != nil {
		return 0, err
	}
	body := z.EncodeAll(b.B, nil)
	sum := sha256.Sum256(body)
	out := append([]byte(saveMagic), binary.LittleEndian.AppendUint64(nil, uint64(len(body)))...)
	out = append(append(out, sum[:]...), body...)
	n, err := w.Write(out)
	return int64(n), err
}

// ReadSaved reads what WriteTo wrote.
func ReadSaved(r io.Reader) (*Saved, error) {
	head := make([]byte, len(saveMagic)+8+sha256.Size)
	if _, err := io.ReadFull(r, head); err != nil || string(head[:len(saveMagic)]) != saveMagic {
		return nil, errors.New("not a saved fabric")
	}
	n := binary.LittleEndian.Uint64(head[len(saveMagic):])
	if n > maxSaved {
		return nil, fmt.Errorf("saved fabric claims %d bytes; the limit is %d", n, uint64(maxSaved))
	}
	body, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(body); uint64(len(body)) != n || !bytes.Equal(sum[:], head[len(saveMagic)+8:]) {
		return nil, errors.New("saved fabric is damaged: its checksum does not match")
	}
	if n, _ := io.ReadFull(r, head[:1]); n > 0 {
		return nil, errors.New("more follows the saved fabric: the file is damaged")
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxSaved))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	raw, err := z.DecodeAll(body, nil)
	if err != nil {
		return nil, fmt.Errorf("saved fabric: %w", err)
	}
	return decodeSaved(raw)
}

func decodeSaved(raw []byte) (*Saved, error) {
	b := &snap.Reader{B: raw}
	if v := b.U32(); b.Err == nil && v != saveVersion {
		return nil, fmt.Errorf("saved fabric has format %d; this program reads %d", v, saveVersion)
	}
	s := &Saved{}
	for i := range s.Hash {
		s.Hash[i] = b.U8()
	}
	s.Text = b.Bytes()
	for n := b.Len(); n > 0 && b.Err == nil; n-- {
		s.Faults = append(s.Faults, b.String())
	}
	s.At = b.Time()
	s.Windows = b.U64()
	for range b.Len() {
		s.devices = append(s.devices, savedDevice{b.String(), b.Bytes()})
		if b.Err != nil {
			break
		}
	}
	s.told, s.dead = b.Bytes(), b.Bytes()
	if b.Err != nil {
		return nil, fmt.Errorf("saved fabric: %w", b.Err)
	}
	if len(b.B) > 0 {
		return nil, fmt.Errorf("saved fabric has %d bytes too many", len(b.B))
	}
	return s, nil
}
