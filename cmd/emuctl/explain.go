package main

import (
	"context"

	"github.com/rocemu/rocemu/report/explain"
	"github.com/spf13/cobra"
)

func (a *app) explain() *cobra.Command {
	var f struct {
		Flow  string `flag:"flow" help:"only this workload line, or single flow NAME[rnic2>rnic8#1]"`
		Links bool   `flag:"links" help:"rank cables by what they lose, from counters alone"`
	}
	return a.command(verb{
		use: "explain DIR|FILE [--flow F] [--links]", short: "Say why flows failed or were slow, from records",
		long: `DIR is an output directory of ` + "`emuctl run --out`" + `; a result file alone gives
what counters can tell. Every failed, unfinished or slow flow gets the chain of
its causes: what was lost where, what the transport did, what helps.`,
		example: "  emuctl run examples/disasters/hash-bucket-hole.yaml --out out\n  emuctl explain out\n  emuctl explain out --links",
		args:    cobra.ExactArgs(1), flags: &f,
		run: func(_ context.Context, args []string) error {
			r, err := explain.Load(args[0])
			if err != nil {
				return err
			}
			if f.Links {
				return a.showLinks(r.Links())
			}
			s, err := r.Stories(f.Flow)
			if err != nil {
				return err
			}
			return a.showStories(s)
		},
	})
}

func (a *app) showLinks(links []explain.Link) error {
	if a.json {
		return a.printJSON(links)
	}
	if len(links) == 0 {
		return a.printf("no cable lost or damaged a frame, as far as counters tell\n")
	}
	for i, l := range links {
		if err := a.printf("%d. %s\n", i+1, l.Text); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) showStories(stories []explain.Story) error {
	if a.json {
		return a.printJSON(stories)
	}
	if len(stories) == 0 {
		return a.printf("every flow succeeded and none was slow\n")
	}
	for _, s := range stories {
		if err := a.printf("%s: %s, %s\n", s.Flow, s.Status, s.Class); err != nil {
			return err
		}
		for _, l := range s.Lines {
			if err := a.printf("  %s\n", l); err != nil {
				return err
			}
		}
		if s.Advice != "" {
			if err := a.printf("  advice: %s\n", s.Advice); err != nil {
				return err
			}
		}
	}
	return nil
}
