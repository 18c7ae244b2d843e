package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
)

// healthcheck asks a running emud; for containers without a shell.
func healthcheck() *cobra.Command {
	var addr, path string
	c := &cobra.Command{
		Use: "healthcheck", Short: "Ask a running emud whether it is ready (exit code 0) or not (1)",
		Example: "  emud healthcheck --health 127.0.0.1:8222", Args: cobra.NoArgs,
		PreRunE: func(c *cobra.Command, _ []string) error { return fromEnv(c.Flags()) },
		RunE: func(*cobra.Command, []string) error {
			h := http.Client{Timeout: 2 * time.Second}
			r, err := h.Get("http://" + addr + path)
			if err != nil {
				return err
			}
			defer r.Body.Close()
			b, _ := io.ReadAll(io.LimitReader(r.Body, 256))
			if r.StatusCode != http.StatusOK {
				return fmt.Errorf("%s", b)
			}
			return nil
		},
	}
	c.Flags().StringVar(&addr, "health", "127.0.0.1:8222", "address given to the running emud")
	c.Flags().StringVar(&path, "path", "/readyz", "/readyz or /healthz")
	return c
}

// janitor removes a directory once its standard input ends: it outlives a
// killed parent, whose death closes the pipe.
func janitor() *cobra.Command {
	return &cobra.Command{
		Use: "janitor DIR", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if _, err := os.Stat(args[0] + "/.rocemu-run"); err != nil {
				return fmt.Errorf("%s is no run's directory: %w", args[0], err)
			}
			_, _ = io.Copy(io.Discard, bufio.NewReader(os.Stdin))
			if _, err := os.Stat(args[0]); os.IsNotExist(err) {
				return nil // it ended well and took its directory with it
			}
			for range 20 { // the run's processes are dying too and may still write
				time.Sleep(100 * time.Millisecond)
				if err := os.RemoveAll(args[0]); err != nil {
					continue
				}
				time.Sleep(200 * time.Millisecond)
				if _, err := os.Stat(args[0]); os.IsNotExist(err) {
					return nil
				}
			}
			return nil
		},
	}
}
