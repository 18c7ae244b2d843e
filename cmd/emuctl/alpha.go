package main

import (
	"context"
	"fmt"
	"math/big"
	"strings"

	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
	"github.com/spf13/cobra"
)

// alphaSteps are the eleven values that switch chips offer.
var alphaSteps = []string{"1/128", "1/64", "1/32", "1/16", "1/8", "1/4", "1/2", "1", "2", "4", "8"}

// alphaRow is what n equally congested queues get under one alpha: each
// alpha/(1+n·alpha) of the shared cells, 1/(1+n·alpha) stays free.
type alphaRow struct {
	Alpha       string  `json:"alpha"`
	Queues      int     `json:"queues"`
	Share       float64 `json:"share"`         // of the pool, one queue
	XOFFCell    int64   `json:"xoff_cell"`     // the cell with which one queue reaches its threshold
	XOFFBytes   int64   `json:"xoff_bytes"`    // the same in bytes of whole cells
	FreeCells   int64   `json:"free_cells"`    // of the pool when all have reached it
	FreePercent float64 `json:"free_percent"`  // the same in percent
	UsedPercent float64 `json:"used_percent"`  // by all queues together
	PoolCells   int64   `json:"pool_cells"`    // shared pool
	CellBytes   int64   `json:"cell_bytes"`    // cell size
	AlphaValue  float64 `json:"alpha_decimal"` // alpha as a decimal
}

func (a *app) alpha() *cobra.Command {
	f := struct {
		Pool   string `flag:"pool" help:"shared pool: a size, or a bare number of cells"`
		Cell   string `flag:"cell" help:"cell size"`
		Queues int    `flag:"queues" help:"queues (priority groups) that are congested at once"`
		SVG    bool   `flag:"svg" help:"write a picture of threshold over alpha instead of the table"`
	}{Pool: "12MiB", Cell: "208B", Queues: 1}
	return a.command(verb{
		use: "alpha [--pool 12MiB] [--cell 208B] [--queues N] [--svg]", short: "Dynamic threshold of every alpha, in cells",
		long:    "A queue may hold alpha times what is free of the shared pool: with n queues congested\nat once each gets alpha/(1+n·alpha) of it. The XOFF cell is the first at or above that.",
		example: "  emuctl alpha --pool 12MiB --queues 8\n  emuctl alpha --pool 100000 --svg > alpha.svg",
		args:    cobra.NoArgs, flags: &f,
		run: func(context.Context, []string) error {
			rows, err := alphaTable(f.Pool, f.Cell, f.Queues)
			if err != nil {
				return err
			}
			return a.showAlpha(rows, f.SVG)
		},
	})
}

// poolCells reads a pool as cells: a bare number counts cells.
func poolCells(pool, cell string) (cells, size int64, err error) {
	if size, err = topology.ParseSize(cell); err != nil {
		return 0, 0, fmt.Errorf("--cell: %w", err)
	}
	if _, scanErr := fmt.Sscanf(pool, "%d", &cells); scanErr == nil && fmt.Sprint(cells) == pool {
		return cells, size, nil
	}
	bytes, err := topology.ParseSize(pool)
	if err != nil {
		return 0, 0, fmt.Errorf("--pool: %w", err)
	}
	if size <= 0 {
		return 0, 0, fmt.Errorf("--cell: %s must be above 0", cell)
	}
	return bytes / size, size, nil
}

func alphaTable(pool, cell string, queues int) ([]alphaRow, error) {
	cells, size, err := poolCells(pool, cell)
	if err != nil {
		return nil, err
	}
	if queues < 1 || cells < 1 {
		return nil, fmt.Errorf("alpha: %d queues on %d cells: both must be at least 1", queues, cells)
	}
	var out []alphaRow
	for _, s := range alphaSteps {
		al, err := topology.ParseAlpha(s)
		if err != nil {
			return nil, err
		}
		// share = num/(den + n·num); the XOFF cell is ceil(share·cells).
		share := big.NewRat(al.Num, al.Den+int64(queues)*al.Num)
		at := new(big.Rat).Mul(share, big.NewRat(cells, 1))
		up := new(big.Int).Div(new(big.Int).Add(at.Num(), new(big.Int).Sub(at.Denom(), big.NewInt(1))), at.Denom()).Int64()
		f, _ := share.Float64()
		free := cells - int64(queues)*up
		out = append(out, alphaRow{
			Alpha: s, Queues: queues, Share: f, XOFFCell: up, XOFFBytes: up * size, FreeCells: free,
			FreePercent: 100 * float64(free) / float64(cells), UsedPercent: 100 * float64(cells-free) / float64(cells),
			PoolCells: cells, CellBytes: size, AlphaValue: float64(al.Num) / float64(al.Den),
		})
	}
	return out, nil
}

func (a *app) showAlpha(rows []alphaRow, svg bool) error {
	if a.json {
		return a.printJSON(rows)
	}
	if svg {
		return a.printf("%s", alphaSVG(rows))
	}
	t := report.NewTable("alpha", "share of pool", "XOFF at cell", "bytes", "free cells", "free")
	for _, r := range rows {
		t.AppendRow([]any{r.Alpha, fmt.Sprintf("%.2f%%", 100*r.Share), r.XOFFCell, report.Bytes(r.XOFFBytes), r.FreeCells, fmt.Sprintf("%.2f%%", r.FreePercent)})
	}
	return a.printf("shared pool %d cells of %d B, %d queue(s) congested at once\n%s\n", rows[0].PoolCells, rows[0].CellBytes, rows[0].Queues, t.Render())
}

// alphaSVG draws one queue's share and what all use together, over alpha.
func alphaSVG(rows []alphaRow) string {
	const w, h, left, bottom, step = 640, 360, 60, 40, 50
	y := func(percent float64) float64 { return h - bottom - percent*(h-bottom-20)/100 }
	var s, one, all strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", w, h)
	fmt.Fprintf(&s, `<rect width="%d" height="%d" fill="white"/>`+"\n", w, h)
	for p := 0; p <= 100; p += 25 {
		fmt.Fprintf(&s, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%d%%</text>`+"\n",
			left, w-20, y(float64(p)), y(float64(p)), left-6, y(float64(p))+4, p)
	}
	for i, r := range rows {
		x := left + 10 + i*step
		fmt.Fprintf(&one, "%d,%.2f ", x, y(100*r.Share))
		fmt.Fprintf(&all, "%d,%.2f ", x, y(r.UsedPercent))
		fmt.Fprintf(&s, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", x, h-bottom+18, r.Alpha)
	}
	fmt.Fprintf(&s, `<polyline points="%s" fill="none" stroke="#c0392b" stroke-width="2"/>`+"\n", strings.TrimSpace(one.String()))
	fmt.Fprintf(&s, `<polyline points="%s" fill="none" stroke="#2471a3" stroke-width="2" stroke-dasharray="6 3"/>`+"\n", strings.TrimSpace(all.String()))
	fmt.Fprintf(&s, `<text x="%d" y="16" fill="#c0392b">XOFF threshold of one queue, share of the pool</text>`+"\n", left)
	fmt.Fprintf(&s, `<text x="%d" y="16" fill="#2471a3">used by %d queue(s)</text>`+"\n", left+320, rows[0].Queues)
	fmt.Fprintf(&s, `<text x="%d" y="%d" text-anchor="middle">alpha</text>`+"\n</svg>\n", (w+left)/2, h-6)
	return s.String()
}
