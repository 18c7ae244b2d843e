// Command emuctl runs, checks and inspects emulated RoCEv2 fabrics. It only
// composes: each verb lives in a file of its own and calls the packages that do
// the work. Start at newRoot.
package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

func main() { os.Exit(emuctl(os.Args[1:], os.Stdout, os.Stderr)) }

// emuctl runs one command line and returns its exit code.
func emuctl(args []string, out, err io.Writer) int {
	a := &app{out: out, err: err, outTTY: isTerminal(out), errTTY: isTerminal(err)}
	return a.execute(args)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
