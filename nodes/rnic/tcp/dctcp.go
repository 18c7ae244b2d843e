package tcp

// DCTCP (RFC 8257): α, the share of marked bytes, is averaged with gain 1/16
// once a window of data, and the window is cut by α/2 at most once a window.

const (
	alphaOne  = 1 << 20 // α = 1; the initial value (3.3)
	alphaGain = 16
)

type dctcp struct {
	alpha         int64 // × 2^20
	acked, marked int64 // bytes of this window of data
	window        int64 // it ends when una passes this
	cutUntil      int64 // no further cut before una passes this
}

// dctcpAck books n acknowledged bytes, marked or not.
func (s *Sender) dctcpAck(n int64, ece bool) {
	d := &s.dctcp
	d.acked += n
	if ece {
		d.marked += n
	}
	if s.una > d.window && d.acked > 0 {
		d.alpha -= d.alpha / alphaGain
		d.alpha += d.marked * alphaOne / (d.acked * alphaGain)
		d.alpha = min(d.alpha, alphaOne)
		d.acked, d.marked, d.window = 0, 0, s.next
	}
	if !ece || s.una < d.cutUntil || s.recovering() {
		return
	}
	d.cutUntil = s.next
	s.cuts++
	s.cwnd = max(s.cwnd-s.cwnd*d.alpha/(2*alphaOne), 2*s.c.MSS)
	s.ssthresh, s.rem = s.cwnd, 0
}

// Alpha is the estimate of the share of marked bytes × 2^20.
func (s *Sender) Alpha() int64 { return s.dctcp.alpha }
