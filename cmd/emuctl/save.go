package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

// saves turns --save-at T=FILE into stops of the run, in order of T. Each that
// the run comes to tells done of its argument.
func saves(args []string, done func(arg string)) ([]sim.Pause, error) {
	var out []sim.Pause
	for _, a := range args {
		at, file, ok := strings.Cut(a, "=")
		if !ok || file == "" {
			return nil, fmt.Errorf("--save-at %q: must be TIME=FILE, such as 50us=half.snap", a)
		}
		d, err := topology.ParseDuration(at)
		if err != nil || d <= 0 {
			return nil, fmt.Errorf("--save-at %q: %q is not a time after the start, such as 1ms", a, at)
		}
		out = append(out, sim.Pause{At: clock.Time(d), Do: func(f *sim.Fabric) error { done(a); return writeSaved(f, file) }})
	}
	slices.SortStableFunc(out, func(a, b sim.Pause) int { return cmp.Compare(a.At, b.At) })
	return out, nil
}

// writeSaved writes the fabric beside its place and moves it there, so that a
// reader never meets half a file.
func writeSaved(f *sim.Fabric, file string) error {
	if i, err := os.Stat(file); err == nil && !i.Mode().IsRegular() {
		return fmt.Errorf("--save-at: %s is there and no ordinary file: name one that may be replaced", file)
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".saving-*")
	if err != nil {
		return fmt.Errorf("--save-at: %w", err)
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // gone after the rename
	_, err = f.Save().WriteTo(tmp)
	if err = errors.Join(err, tmp.Close()); err != nil {
		return fmt.Errorf("--save-at %s: %w", file, err)
	}
	if err := os.Rename(tmp.Name(), file); err != nil {
		return fmt.Errorf("--save-at: %w", err)
	}
	return nil
}

// readSaved reads a --restore file.
func readSaved(file string) (*sim.Saved, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--restore %s: no such saved fabric; run --save-at TIME=FILE writes one", file)
	}
	if err != nil {
		return nil, fmt.Errorf("--restore: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	s, err := sim.ReadSaved(f)
	if err != nil {
		return nil, fmt.Errorf("--restore %s: %w", file, err)
	}
	return s, nil
}

// load reads the fabric files, or without any the text of the saved fabric.
func (f *runFlags) load(files []string) (*loaded, error) {
	if len(files) > 0 || f.Restore == "" {
		return load(files, f.Set, f.Seed)
	}
	s, err := readSaved(f.Restore)
	if err != nil {
		return nil, err
	}
	for _, x := range f.Set {
		path, _, _ := strings.Cut(x, "=")
		switch key := path[strings.LastIndex(path, ".")+1:]; key {
		case "preset", "model", "asic", "profile":
			return nil, fmt.Errorf("--set %s: %s has every value of its own, which goes before those of a %s: set the values, or give the fabric file too", x, f.Restore, key)
		}
	}
	plan, warns, err := topology.Resolve([]topology.Source{{Name: f.Restore, Text: s.Text}}, f.Set, f.Seed, nil)
	if err != nil {
		return nil, err
	}
	return compile(plan, warns)
}

// resume puts --restore and --save-at into a run's options; saved gets the
// arguments whose instants the run comes to.
func (f *runFlags) resume(o *sim.Options, saved map[string]bool) error {
	stops, err := saves(f.SaveAt, func(arg string) { saved[arg] = true })
	if err != nil {
		return err
	}
	o.Stops = stops
	if f.Restore == "" {
		return nil
	}
	s, err := readSaved(f.Restore)
	if err != nil {
		return err
	}
	for _, p := range stops {
		if p.At < s.At {
			return fmt.Errorf("%w: --save-at %v lies before %v, the instant it was saved at", sim.ErrUnlike, p.At, s.At)
		}
	}
	o.OnBuild = func(fab *sim.Fabric) error { return fab.Restore(s) }
	return nil
}

// unsaved warns of what --save-at asked for at instants that the run did not
// come to.
func (f *runFlags) unsaved(res *report.Result, saved map[string]bool) (l []string) {
	for _, arg := range f.SaveAt {
		if !saved[arg] {
			l = append(l, fmt.Sprintf("--save-at %s: the run ended at %s, before it; nothing is written", arg, report.Span(res.VirtualNS)))
		}
	}
	return l
}
