package coord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/actortest"
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
)

const (
	simRun      = "r"
	maxSimSlots = 16
)

// simModel binds the synthetic fabric to a node and watches what it executes.
type simModel struct {
	w *simWorld
	l *simLife
}

// Layout implements Model.
func (m *simModel) Layout(s *RunSpec) (*Layout, error) {
	var spec actortest.Spec
	if err := json.Unmarshal([]byte(s.Files[0].Text), &spec); err != nil {
		return nil, err
	}
	f := actortest.New(spec)
	l := &Layout{Hash: SumOf([]byte(s.Files[0].Text)), Names: f.Config.Names, Window: f.Window, End: f.Config.Limit}
	for d := range l.Names {
		l.Groups = append(l.Groups, Group{Devices: []int32{int32(d)}, Weight: int64(len(f.Config.Cables[d]))})
	}
	return l, nil
}

// Build implements Model.
func (m *simModel) Build(s *RunSpec, hosted func(int32) bool, workers int) (Fabric, error) {
	f := actortest.New(m.w.plan.spec)
	x := &simShare{m: m, run: s.ID, f: f, first: -1}
	as := make([]actors.Actor, len(f.Relays))
	for d, r := range f.Relays {
		if hosted(int32(d)) {
			as[d] = &simActor{r, x}
			if x.first < 0 {
				x.first = d
			}
		}
	}
	e, err := actors.New(f.Config, as, workers)
	if err != nil {
		return nil, err
	}
	x.e, e.Observe = e, x.observe
	if s.Batch {
		e.Stride = m.w.plan.stride
	}
	return x, nil
}

// CheckFaults implements Model.
func (m *simModel) CheckFaults(_ *RunSpec, _, come []Fault) error {
	for i := range come {
		if f := &come[i]; !f.Clear {
			if _, _, err := simFault(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// simFault reads "disturb RELAY ID".
func simFault(f *Fault) (dev int, id uint64, err error) {
	_, err = fmt.Sscanf(f.Text, "disturb %d %d", &dev, &id)
	return dev, id, err
}

// simShare is a hosted share of the fabric: one incarnation of one slot.
type simShare struct {
	m      *simModel
	run    string
	f      *actortest.Fabric
	e      *actors.Engine
	first  int // hosted device; it names the slot
	n      uint64
	start  clock.Time
	looked bool
	top    clock.Time // furthest end of an actor's stretch
	faults []Fault
}

// Engine implements Fabric.
func (x *simShare) Engine() *actors.Engine { return x.e }

// Schedule implements Fabric.
func (x *simShare) Schedule(f *Fault) error {
	d, id, err := simFault(f)
	if err != nil {
		return err
	}
	x.faults = append(x.faults, *f)
	if x.e.Hosts(int32(d)) {
		x.f.Relays[d].Disturb(f.Eff, id)
		x.e.Wake(int32(d), f.Eff)
	}
	return nil
}

// Parts implements Fabric.
func (x *simShare) Parts(clock.Time, clock.Time) ([]byte, error) {
	return []byte(x.e.Digest().String()), nil
}

func (x *simShare) observe(start clock.Time, n uint64) {
	x.n, x.start, x.looked = n, start, false
	x.m.w.note("%s device %d window %d at %d", x.m.l.id, x.first, n, start)
}

// simActor is a relay that looks at the step it is asked to run a part of.
type simActor struct {
	*actortest.Relay
	x *simShare
}

// Advance implements actors.Actor.
func (a *simActor) Advance(end clock.Time, in *actors.Inbox, out *actors.Outbox, st *actors.Status) {
	if !a.x.looked {
		a.x.looked = true
		a.x.check()
	}
	if end > a.x.top {
		a.x.top = end
		a.x.granted(end)
	}
	a.Relay.Advance(end, in, out, st)
}

// Restore implements actors.Actor.
func (a *simActor) Restore(r *snap.Reader) error {
	err := a.Relay.Restore(r)
	for d := range a.x.f.Relays {
		if a.x.f.Relays[d] == a.Relay && err == nil {
			a.x.known(d)
		}
	}
	return err
}

// simStep names a window of a run.
type simStep struct {
	run string
	n   uint64
}

// simWindow is what every execution of a window, or of a round, must have in
// common.
type simWindow struct {
	start, end clock.Time
	faults     uint64
	by         string
}

// granted holds the execution of a window to I1.
func (x *simShare) granted(end clock.Time) {
	x.m.l.node.rep.View(func(s *State) {
		r := s.Run
		for _, p := range s.Past {
			if p.Spec.ID == x.run {
				r = p
			}
		}
		if r == nil || r.Spec.ID != x.run || end > r.Grant {
			x.m.w.violate("I1: %s runs window %d to %v past its grant", x.m.l.id, x.n, end)
		}
	})
}

// check holds the execution of a window to I2 and to what others made of the
// same window.
func (x *simShare) check() {
	w := x.m.w
	_, wide := x.e.Merged()
	end := x.start.Add(clock.Duration(wide) * x.f.Config.Window)
	sum := uint64(0)
	for i := range x.faults {
		if f := &x.faults[i]; f.Eff < end {
			sum += clock.Mix(w.seed, f.Seq, uint64(f.Eff))
		}
	}
	now := simWindow{x.start, end, sum, x.m.l.id}
	w.mu.Lock()
	k := simStep{x.run, x.n}
	old, ok := w.windows[k]
	if !ok {
		w.windows[k] = now
	}
	w.mu.Unlock()
	switch {
	case !ok:
	case old.start != now.start || old.end != now.end:
		w.violate("window %d is [%v, %v) in %s and [%v, %v) in %s", x.n, old.start, old.end, old.by, now.start, now.end, now.by)
	case old.faults != now.faults:
		w.violate("I2: window %d has other faults in %s than in %s", x.n, now.by, old.by)
	}
}

// simBatch and simState name what may have one content only.
type (
	simBatch struct {
		run      string
		src, dst int
		n        uint64
	}
	simState struct {
		run  string
		slot int
		n    uint64
	}
)

// simDisk is a process's blob directory. It outlives the process.
type simDisk struct{ l *simLife }

// op takes a while and may fail; what happens follows from the operation, not
// from when a goroutine comes to it.
func (l *simLife) op(what, sum string) (uint64, error) {
	if err := l.hold(); err != nil {
		return 0, err
	}
	l.w.mu.Lock()
	l.ops[what+sum]++
	h := clock.Mix(clock.HashString(clock.HashString(l.w.seed, l.id), what+sum), uint64(l.ops[what+sum]), 2)
	l.w.mu.Unlock()
	time.Sleep(50*time.Microsecond + time.Duration(h%uint64(l.w.plan.disk)))
	return clock.Mix(h, 1, 3), l.hold()
}

// Put implements Blobs.
func (d simDisk) Put(_ context.Context, b []byte) (string, error) {
	sum := SumOf(b)
	h, err := d.l.op("put", sum)
	if err != nil {
		return "", err
	}
	w := d.l.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if d.l.proc.full {
		return "", errors.New("sim: the disk fails")
	}
	d.l.proc.files[sum] = simFile{torn(b, h, w.plan.torn), time.Now()}
	w.notes = append(w.notes, fmt.Sprintf("%s keeps %.12s", d.l.id, sum))
	return sum, nil
}

// torn damages a few blobs on their way.
func torn(b []byte, h uint64, one uint64) []byte {
	c := append([]byte(nil), b...)
	switch {
	case one == 0 || h%one != 0 || len(c) == 0:
	case h>>32&1 == 0:
		c = c[:len(c)/2]
	default:
		c[h>>33%uint64(len(c))] ^= 1
	}
	return c
}

func (d simDisk) read(sum string) ([]byte, error) {
	if _, err := d.l.op("get", sum); err != nil {
		return nil, err
	}
	d.l.w.mu.Lock()
	defer d.l.w.mu.Unlock()
	f, ok := d.l.proc.files[sum]
	if !ok {
		return nil, errors.New("sim: no such file")
	}
	return f.b, nil
}

// Get implements Blobs.
func (d simDisk) Get(_ context.Context, sum string) ([]byte, error) {
	b, err := d.read(sum)
	if err != nil {
		return nil, err
	}
	return checked(sum, b)
}

func (d simDisk) piece(sum string, offset int) ([]byte, int, error) {
	b, err := d.read(sum)
	if err != nil || offset >= len(b) {
		return nil, 0, errors.Join(err, errors.New("sim: past the end"))
	}
	return b[offset:min(len(b), offset+simPiece)], len(b), nil
}

const simPiece = 700 // makes several pieces of a state

func (d simDisk) sweep(_ context.Context, keep map[string]bool, older time.Time) error {
	if _, err := d.l.op("sweep", ""); err != nil {
		return err
	}
	d.l.w.mu.Lock()
	defer d.l.w.mu.Unlock()
	for sum, f := range d.l.proc.files {
		if !keep[sum] && f.at.Before(older) {
			delete(d.l.proc.files, sum)
		}
	}
	return nil
}

// simObjects is the shared object store under jsBlobs.
type simObjects struct {
	jetstream.ObjectStore
	l *simLife
}

var errSimAway = errors.New("sim: the object store is away")

func (o simObjects) get(what, name string) ([]byte, uint64, error) {
	h, err := o.l.op(what, name)
	if err != nil {
		return nil, h, err
	}
	o.l.w.mu.Lock()
	defer o.l.w.mu.Unlock()
	if o.l.w.away || o.l.cut[simCtl] != (simCut{}) {
		return nil, h, errSimAway
	}
	return o.l.w.shared[name], h, nil
}

// GetInfo implements jetstream.ObjectStore.
func (o simObjects) GetInfo(_ context.Context, name string, _ ...jetstream.GetObjectInfoOpt) (*jetstream.ObjectInfo, error) {
	b, _, err := o.get("info", name)
	if err == nil && b == nil {
		err = jetstream.ErrObjectNotFound
	}
	return &jetstream.ObjectInfo{}, err
}

// GetBytes implements jetstream.ObjectStore.
func (o simObjects) GetBytes(_ context.Context, name string, _ ...jetstream.GetObjectOpt) ([]byte, error) {
	b, _, err := o.get("load", name)
	if err == nil && b == nil {
		err = jetstream.ErrObjectNotFound
	}
	return b, err
}

// PutBytes implements jetstream.ObjectStore.
func (o simObjects) PutBytes(_ context.Context, name string, b []byte) (*jetstream.ObjectInfo, error) {
	_, h, err := o.get("store", name)
	if err != nil {
		return nil, err
	}
	o.l.w.mu.Lock()
	defer o.l.w.mu.Unlock()
	o.l.w.shared[name] = torn(b, h, o.l.w.plan.torn)
	return &jetstream.ObjectInfo{}, nil
}

// List implements jetstream.ObjectStore: nothing is old enough to go.
func (o simObjects) List(context.Context, ...jetstream.ListObjectsOpt) ([]*jetstream.ObjectInfo, error) {
	return nil, jetstream.ErrNoObjectsFound
}

// sums lists a store's blobs in order.
func sums[T any](m map[string]T) (l []string) {
	for s := range m {
		l = append(l, s)
	}
	sort.Strings(l)
	return l
}
