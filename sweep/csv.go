package sweep

import (
	"encoding/csv"
	"io"
	"strconv"
)

// WriteCSV writes a row a run: the values of the axes, the seed, the figures.
// Where the seed is an axis, its column is the one all tables have.
func WriteCSV(w io.Writer, axes []Axis, points []Point) error {
	c := csv.NewWriter(w)
	var head []string
	for _, a := range axes {
		if a.Path != SeedPath {
			head = append(head, a.Path)
		}
	}
	head = append(head, "seed", "verdict", "goodput_bps", "fct_p50_ns", "fct_p99_ns", "completion_ns", "pause_share", "pfc_pause_frames", "ecn_marked_frames", "dropped_frames",
		"retransmitted_packets", "failed_flows", "headroom_watermark_bytes", "shared_watermark_bytes", "queue_watermark_bytes", "virtual_ns", "pareto", "best", "digest")
	if err := c.Write(head); err != nil {
		return err
	}
	u := func(n uint64) string { return strconv.FormatUint(n, 10) }
	d := func(n int64) string { return strconv.FormatInt(n, 10) }
	ns := func(n int64) string { return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) }
	for i := range points {
		p := &points[i]
		for k := range p.Runs {
			m := &p.Runs[k].Metrics
			var row []string
			for a, v := range p.Values {
				if axes[a].Path != SeedPath {
					row = append(row, v)
				}
			}
			row = append(row, u(p.Runs[k].Seed), m.Verdict, d(m.GoodputBP), ns(int64(m.P50)), ns(int64(m.P99)), ns(int64(m.Completion)), strconv.FormatFloat(m.PauseShare, 'g', 6, 64),
				u(m.Pauses), u(m.Marks), u(m.Drops), u(m.Resent), d(m.Failed), d(m.Headroom), d(m.Shared), d(m.Queue), ns(int64(m.VirtualNS)),
				strconv.FormatBool(p.Front), strconv.FormatBool(p.Best), m.Digest)
			if err := c.Write(row); err != nil {
				return err
			}
		}
	}
	c.Flush()
	return c.Error()
}
