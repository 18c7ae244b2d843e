package main

import (
	"context"
	"fmt"

	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/report"
	"github.com/spf13/cobra"
)

type timerFlags struct {
	Timeout int `flag:"timeout" help:"local ACK timeout exponent, 0..31; 0 = off"`
	Retry   int `flag:"retry" help:"retry_cnt, 0..7"`
	RNR     int `flag:"rnr" help:"min_rnr_timer code, 0..31"`
	RNRTry  int `flag:"rnr-retry" help:"rnr_retry, 0..7; 7 = for ever"`
	PLT     int `flag:"packet-life" help:"packet lifetime exponent, for the connection manager's forms"`
	Delay   int `flag:"ack-delay" help:"peer's ACK delay exponent, for the same"`
}

// timerForm is one way to turn exponents into a timeout.
type timerForm struct {
	Form       string    `json:"form"`
	TimeoutNS  report.NS `json:"timeout_ns"`
	LastNS     report.NS `json:"last_retransmission_ns"` // retry_cnt · T: the last chance
	FailsNS    report.NS `json:"fails_ns"`               // (retry_cnt + 1) · T
	Definition string    `json:"definition"`
}

// timerStep is what happens to a request that is never answered, in the
// standard's reading and in the article's; null when the timer is off.
type timerStep struct {
	StandardNS *report.NS `json:"standard_ns"`
	ArticleNS  *report.NS `json:"article_ns"`
	What       string     `json:"what"`
}

type rnrForm struct {
	Form    string     `json:"form"`
	WaitNS  report.NS  `json:"wait_ns"`
	FailsNS *report.NS `json:"fails_ns"` // null: never
}

// timersOut is what `emuctl timers --json` prints.
type timersOut struct {
	Timeout int         `json:"timeout"`
	Retry   int         `json:"retry_cnt"`
	RNR     int         `json:"min_rnr_timer"`
	Forms   []timerForm `json:"forms"`
	Ladder  []timerStep `json:"ladder"`
	RNRWait []rnrForm   `json:"rnr"`
}

func (a *app) timers() *cobra.Command {
	f := timerFlags{Timeout: 14, Retry: 7, RNR: 12, RNRTry: 7, PLT: 18, Delay: 15}
	return a.command(verb{
		use: "timers [--timeout 14] [--retry 7] [--rnr 12]", short: "Timers and retries of a queue pair, by the standard and by other readings",
		long:    "Shows when an unanswered request is sent again, its last chance and when it fails,\nand how long an RNR NAK makes the requester wait.",
		example: "  emuctl timers --timeout 14 --retry 7 --rnr 12\n  emuctl timers --packet-life 14 --ack-delay 15 --json",
		args:    cobra.NoArgs, flags: &f,
		run: func(context.Context, []string) error {
			o, err := f.compute()
			if err != nil {
				return err
			}
			return a.showTimers(o)
		},
	})
}

func (f *timerFlags) check() error {
	for _, x := range []struct {
		name string
		v, m int
	}{
		{"timeout", f.Timeout, 31},
		{"retry", f.Retry, 7},
		{"rnr", f.RNR, 31},
		{"rnr-retry", f.RNRTry, 7},
		{"packet-life", f.PLT, 31},
		{"ack-delay", f.Delay, 31},
	} {
		if x.v < 0 || x.v > x.m {
			return fmt.Errorf("--%s %d: allowed 0..%d", x.name, x.v, x.m)
		}
	}
	return nil
}

func (f *timerFlags) compute() (*timersOut, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	o := &timersOut{Timeout: f.Timeout, Retry: f.Retry, RNR: f.RNR}
	own := fmt.Sprintf("4.096us x 2^%d, the queue pair's own exponent", f.Timeout)
	if f.Timeout == 0 {
		own = "exponent 0 turns the timer off"
	}
	for _, m := range []struct {
		name, def string
		mode      qp.TimeoutMode
	}{
		{"ibta", own, qp.TimeoutIBTA},
		{"linux", fmt.Sprintf("connection manager, whole exponents: lifetime %d, ACK delay %d", f.PLT, f.Delay), qp.TimeoutLinux},
		{"exact", fmt.Sprintf("4.096us x (2 x 2^%d + 2^%d)", f.PLT, f.Delay), qp.TimeoutExact},
		{"article", fmt.Sprintf("4.096us x (2 x %d + %d): exponents taken as factors", f.PLT, f.Delay), qp.TimeoutArticle},
	} {
		v, err := qp.ResolveTimeout(qp.TimeoutParams{Mode: m.mode, Exponent: uint8(f.Timeout), PacketLife: uint8(f.PLT), AckDelay: uint8(f.Delay)})
		if err != nil {
			return nil, err
		}
		t := report.NS(v.T)
		o.Forms = append(o.Forms, timerForm{m.name, t, t * report.NS(f.Retry), t * report.NS(f.Retry+1), m.def})
	}
	std, art, err := qp.Ladder(qp.LadderParams{
		Timeout: uint8(f.Timeout), Retry: uint8(f.Retry), RNR: uint8(f.RNR), RNRRetry: uint8(f.RNRTry),
		PacketLife: uint8(f.PLT), AckDelay: uint8(f.Delay),
	})
	if err != nil {
		return nil, err
	}
	o.Ladder = steps(f.Retry, &std, &art)
	for _, r := range []struct {
		name   string
		linear bool
	}{{"ibta", false}, {"article-linear", true}} {
		w := report.NS(qp.RNRWait(uint8(f.RNR), r.linear))
		form := rnrForm{Form: r.name, WaitNS: w}
		if f.RNRTry < 7 {
			fails := w * report.NS(f.RNRTry)
			form.FailsNS = &fails
		}
		o.RNRWait = append(o.RNRWait, form)
	}
	return o, nil
}

// steps joins the two ladders of a request that is never answered.
func steps(retry int, std, art *qp.LadderSide) []timerStep {
	at := func(s *qp.LadderSide, n int) *report.NS {
		if s.T == 0 {
			return nil
		}
		v := report.NS(s.T) * report.NS(n)
		return &v
	}
	var out []timerStep
	for n := 0; n <= retry+1; n++ {
		what := fmt.Sprintf("timeout %d: sent again", n)
		switch n {
		case 0:
			what = "sent"
		case retry + 1:
			what = fmt.Sprintf("timeout %d: fails with retry_exc_err", n)
		case retry:
			what += ", the last chance"
		}
		out = append(out, timerStep{at(std, n), at(art, n), what})
	}
	return out
}

func (a *app) showTimers(o *timersOut) error {
	if a.json {
		return a.printJSON(o)
	}
	forms := report.NewTable("ACK timeout", "T", fmt.Sprintf("last chance (%dT)", o.Retry), fmt.Sprintf("fails (%dT)", o.Retry+1), "definition")
	for _, f := range o.Forms {
		if f.TimeoutNS == 0 {
			forms.AppendRow([]any{f.Form, "off", "never", "never", f.Definition})
			continue
		}
		forms.AppendRow([]any{f.Form, f.TimeoutNS, f.LastNS, f.FailsNS, f.Definition})
	}
	ladder := report.NewTable("standard", "article", fmt.Sprintf("a request that is never answered, timeout %d, retry_cnt %d", o.Timeout, o.Retry))
	for _, s := range o.Ladder {
		ladder.AppendRow([]any{orNever(s.StandardNS), orNever(s.ArticleNS), s.What})
	}
	rnr := report.NewTable(fmt.Sprintf("RNR timer code %d", o.RNR), "wait", "fails after")
	for _, r := range o.RNRWait {
		fails := "never (rnr_retry 7 = for ever)"
		if r.FailsNS != nil {
			fails = r.FailsNS.String()
		}
		rnr.AppendRow([]any{r.Form, r.WaitNS, fails})
	}
	return a.printf("%s\n\n%s\n\n%s\n", forms.Render(), ladder.Render(), rnr.Render())
}

// orNever prints an instant, or that the timer is off.
func orNever(n *report.NS) string {
	if n == nil {
		return "timer off"
	}
	return n.String()
}
