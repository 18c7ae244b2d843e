package clab

import (
	"testing"

	"github.com/rocemu/rocemu/topology"
)

// FuzzImport: no text makes the reader panic, and a topology that it takes is
// a fabric file that parses, if not always one that can be built.
func FuzzImport(f *testing.F) {
	f.Add([]byte(pod))
	f.Add([]byte("topology: {nodes: {a: {}, b: }, links: [{endpoints: [\"a:1\", \"b:1\"]}]}"))
	f.Fuzz(func(_ *testing.T, text []byte) {
		r, err := Import("f", text)
		if err != nil {
			return
		}
		_, _, _ = topology.ParseBytes("fabric.yaml", r.YAML)
	})
}
