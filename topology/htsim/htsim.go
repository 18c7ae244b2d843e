// Package htsim turns the inputs of the public htsim packet simulator, a
// fat-tree topology (.topo) and a connection matrix (.cm), into a fabric file.
// Its switches stay lossless (PFC on every port, cores too), as in its RoCE
// runs. What the files contradict is refused with file and line. Start at
// [Import].
package htsim

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/topology/internal/intake"
)

// File is one input text.
type File = intake.File

// Options are the inputs. Unit is what start values of the matrix count: us or
// ps. Public readers of the format disagree, so it must be given as soon as
// one of them is not 0.
type Options struct {
	Topology, Matrix File
	Unit             string
	Lenient          bool // leave out what has no meaning here, with a note
}

// Result is the fabric file and what a reader should know about it.
type Result = intake.Result

// Bounds on input that may be hostile.
const (
	maxNodes = 1 << 16
	maxRadix = 1 << 12
	maxConns = 1 << 22
)

// Import converts. Its error is [topology.Errors].
func Import(o Options) (*Result, error) {
	im := &importer{opt: o, Log: intake.Log{Lenient: o.Lenient}}
	im.topo()
	im.matrix()
	if err := im.Err(); err != nil {
		return nil, err
	}
	return &Result{YAML: im.render(), Notes: im.Notes}, nil
}

type importer struct {
	intake.Log
	opt   Options
	nodes int
	tiers []tier
	pod   int // hosts of a POD
	conns []conn
}

// tier is one level of switches and the links below it.
type tier struct {
	line        int
	rate        clock.Rate
	down, up    int // ports
	bundle      int // parallel links of a pair below
	over        int // oversubscription as written, 0 = not
	delay, pipe clock.Duration
}

// conn is one connection of the matrix.
type conn struct {
	line, src, dst int
	size           int64
	start          clock.Duration
}
