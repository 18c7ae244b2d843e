package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rocemu/rocemu/report"
)

// withUsage adds to a complaint about the number of arguments how the command
// is called.
func withUsage(check cobra.PositionalArgs) cobra.PositionalArgs {
	if check == nil {
		return nil
	}
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return exitError{report.ExitUsage, fmt.Errorf("%s: %w\nusage: %s", c.CommandPath(), err, c.UseLine())}
		}
		return nil
	}
}

// flagError says what a flag takes, in words of its own where the parser has
// only those of the language.
func flagError(c *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	var missing *pflag.NotExistError
	switch {
	case errors.As(err, &value) && value.GetFlag().Value.Type() == "int":
		err = fmt.Errorf("--%s %q: must be a whole number", value.GetFlag().Name, value.GetValue())
	case errors.As(err, &value) && value.GetFlag().Value.Type() == "bool":
		err = fmt.Errorf("--%s=%s: must be true or false", value.GetFlag().Name, value.GetValue())
	case errors.As(err, &missing) && missing.GetSpecifiedName() == "d":
		if f := c.Flags().ShorthandLookup("f"); f != nil && f.Name == "dir" {
			err = fmt.Errorf("%w; -f DIR names the directory of a run here", err)
		}
	}
	return exitError{report.ExitUsage, fmt.Errorf("%w (see %s --help)", err, c.CommandPath())}
}

// isDir reports whether there is a directory of that name.
func isDir(name string) bool {
	st, err := os.Stat(name)
	return err == nil && st.IsDir()
}
