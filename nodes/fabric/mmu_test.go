package fabric

import (
	"fmt"
	"testing"

	"github.com/rocemu/rocemu/nodes/record"
)

// fill sends frames of n cells to PG pg until it drops or max frames went in;
// it returns the 1-based index of the frame that raised XOFF and of the first
// dropped one (0 = none).
func fill(m *MMU, pg int, n int32, max int) (xoff, drop int) {
	for i := 1; i <= max; i++ {
		r := m.Admit(pg, pg, n)
		if xoff == 0 && m.XOFF(pg) {
			xoff = i
		}
		if r != record.NoReason {
			return xoff, i
		}
	}
	return xoff, 0
}

func lossless(n int, c PGConfig) MMUConfig {
	c.Lossless = true
	cfg := MMUConfig{Cell: 208, Slices: 1}
	for range 8 * n {
		cfg.PGs = append(cfg.PGs, c)
		cfg.Queues = append(cfg.Queues, QueueConfig{Lossless: true})
	}
	return cfg
}

// TestSC01AlphaSteps: ceil(alpha·B/(1+alpha)) for the eleven steps.
func TestSC01AlphaSteps(t *testing.T) {
	want := []int{776, 1539, 3031, 5883, 11112, 20000, 33334, 50000, 66667, 80000, 88889}
	for i, w := range want {
		c := lossless(1, PGConfig{Headroom: 1 << 20, Limit: Alpha(i - 7)})
		c.Shared = 100_000
		if x, _ := fill(NewMMU(c), 3, 1, w+5); x != w {
			t.Errorf("alpha 2^%d: XOFF at frame %d, want %d", i-7, x, w)
		}
	}
}

// alternate fills n PGs frame by frame until all are in XOFF and returns their use.
func alternate(m *MMU, n int) []int32 {
	for left := n; left > 0; {
		left = 0
		for i := range n {
			if pg := i * 8; !m.XOFF(pg) {
				left++
				m.Admit(pg, pg, 1)
			}
		}
	}
	use := make([]int32, n)
	for i := range n {
		g, s, h := m.Use(i * 8)
		use[i] = g + s + h
	}
	return use
}

// TestSC02TwoPGs: each of n PGs gets alpha·B/(1+n·alpha).
func TestSC02TwoPGs(t *testing.T) {
	for _, c := range []struct {
		alpha int
		want  [2]int32
	}{{0, [2]int32{4000, 4000}}, {-3, [2]int32{1200, 1200}}, {3, [2]int32{5648, 5647}}} {
		cfg := lossless(2, PGConfig{Headroom: 100, Limit: Alpha(c.alpha)})
		cfg.Shared = 12_000
		m := NewMMU(cfg)
		if u := alternate(m, 2); u[0] != c.want[0] || u[1] != c.want[1] {
			t.Errorf("alpha 2^%d: %v, want %v", c.alpha, u, c.want)
		}
		if c.alpha == 0 && m.SharedFree(0) != 4000 {
			t.Errorf("free %d, want 4000", m.SharedFree(0))
		}
	}
}

// TestSC04Tomahawk: published XOFF and drop indices, one PG.
func TestSC04Tomahawk(t *testing.T) {
	for _, c := range [][3]int{{520, 6542, 7063}, {682, 6542, 7225}, {1292, 6542, 7835}} {
		cfg := lossless(4, PGConfig{Headroom: int32(c[0]), Min: 6, Limit: Alpha(0), XONOffset: 2288})
		cfg.Slices, cfg.Shared = 4, 10_875_072/208/4
		m := NewMMU(cfg)
		if x, d := fill(m, 3, 1, 8000); x != c[1] || d != c[2] {
			t.Errorf("headroom %d: XOFF %d drop %d, want %d and %d", c[0], x, d, c[1], c[2])
		}
		if err := m.Check(); err != nil {
			t.Error(err)
		}
	}
}

// TestSC05TomahawkTogether: n PGs of one slice filled together, 6 + B/(1+n).
func TestSC05TomahawkTogether(t *testing.T) {
	for _, c := range [][2]int32{{10, 1194}, {8, 1458}, {4, 2620}} {
		cfg := lossless(10, PGConfig{Headroom: 520, Min: 6, Limit: Alpha(0), XONOffset: 2288})
		cfg.Shared = 13_071
		for i, u := range alternate(NewMMU(cfg), int(c[0])) {
			if u < c[1]-1 || u > c[1]+1 {
				t.Errorf("n %d: PG %d has %d cells, want %d±1", c[0], i, u, c[1])
			}
		}
	}
}

// TestSC06Trident2: reserved space is taken off the pool.
func TestSC06Trident2(t *testing.T) {
	cfg := lossless(1, PGConfig{Headroom: 265, Min: 6, Limit: Alpha(-3)})
	cfg.Shared = 12_766_208/208 - 64*271
	x, d := fill(NewMMU(cfg), 0, 1, 6000)
	if x < 4897 || x > 4899 || d != 5164 {
		t.Errorf("XOFF %d drop %d, want 4898±1 and 5164", x, d)
	}
}

// TestSC07Tomahawk5: PGs filled one after another halve what is left; SC08:
// the last ones end at exactly their guaranteed minimum.
func TestSC07Tomahawk5(t *testing.T) {
	want := []int{142285, 71159, 35597, 17815, 8925, 4479, 2257, 1145, 590, 312, 173, 103, 69}
	cfg := lossless(20, PGConfig{Headroom: 1000, Min: 34, Limit: Alpha(0), XONOffset: 3556})
	cfg.Shared = 284_502
	m := NewMMU(cfg)
	for i, w := range want {
		for !m.XOFF(i * 8) {
			m.Admit(i*8, i*8, 1)
		}
		g, s, h := m.Use(i * 8)
		if n := int(g + s + h); n < w-1 || n > w+1 {
			t.Errorf("PG %d raised XOFF at %d, want %d±1", i, n, w)
		}
	}
}

// TestSC08Guaranteed: with the pool exhausted a PG stores its minimum without XOFF.
func TestSC08Guaranteed(t *testing.T) {
	cfg := lossless(2, PGConfig{Headroom: 10, Min: 34, Limit: Limit{Mode: Unlimited}})
	cfg.Shared = 500
	cfg.PGs[8].Limit = Alpha(0)
	m := NewMMU(cfg)
	fill(m, 0, 1, 534)
	if m.SharedFree(0) != 0 {
		t.Fatal("pool not exhausted")
	}
	if x, _ := fill(m, 8, 1, 40); x != 35 {
		t.Errorf("XOFF at %d, want 35", x)
	}
	cfg.PGs[8].Min = 0
	m = NewMMU(cfg)
	fill(m, 0, 1, 534)
	if x, _ := fill(m, 8, 1, 1); x != 1 {
		t.Errorf("without a minimum XOFF at %d, want 1", x)
	}
}

// TestSC09Static: a static limit does not move with the pool, a dynamic one does.
func TestSC09Static(t *testing.T) {
	for _, busy := range []int{0, 1200} {
		cfg := lossless(3, PGConfig{Headroom: 9999, Limit: Limit{Mode: Static, Bytes: 182_000}})
		cfg.Shared = 12_000
		cfg.PGs[8].Limit = Limit{Mode: Unlimited}
		cfg.PGs[16].Limit = Alpha(0)
		m := NewMMU(cfg)
		fill(m, 8, 1, busy)
		if x, _ := fill(m, 0, 1, 875); x != 875 { // 875 cells of 208 B are 182 000 B
			t.Errorf("busy %d: static XOFF at %d, want 875", busy, x)
		}
		free := 12_000 - busy - 875
		if x, _ := fill(m, 16, 1, 7000); x != (free+1)/2 {
			t.Errorf("busy %d: dynamic XOFF at %d, want %d", busy, x, (free+1)/2)
		}
	}
	cfg := lossless(1, PGConfig{Headroom: 9999, Limit: Limit{Mode: Unlimited}})
	cfg.Shared = 12_000
	if x, _ := fill(NewMMU(cfg), 0, 1, 12_000); x != 0 {
		t.Errorf("static_th 0 must not limit, XOFF at %d", x)
	}
}

// TestSC10HeadroomPool: the pool, not the cap, stops the last PG.
func TestSC10HeadroomPool(t *testing.T) {
	for _, c := range []struct{ cap, n, full, last int }{{520, 10, 9, 361}, {682, 8, 7, 267}, {1292, 4, 3, 1165}} {
		cfg := lossless(c.n, PGConfig{Headroom: int32(c.cap), Limit: Alpha(0)})
		cfg.Shared, cfg.HeadroomPool = 13_071, 4_194_112/208/4
		m := NewMMU(cfg)
		alternate(m, c.n)
		for i := range c.n {
			room := 0
			var why record.Reason
			for why == record.NoReason {
				_, _, before := m.Use(i * 8)
				why = m.Admit(i*8, i*8, 1)
				_, _, after := m.Use(i * 8)
				room = int(max(before, after))
			}
			want, reason := c.cap, record.BufferHeadroom
			if i == c.full {
				want, reason = c.last, record.HeadroomPool
			}
			if room != want || why != reason {
				t.Errorf("cap %d PG %d: headroom %d, %v; want %d, %v", c.cap, i, room, why, want, reason)
			}
		}
		if _, h := m.PoolMarks(); h != 5041*208 {
			t.Errorf("pool watermark %d cells, want 5041", h/208)
		}
	}
}

// TestSC11Lossy: a lossy PG drops at its threshold, uses no headroom and never sends XOFF.
func TestSC11Lossy(t *testing.T) {
	cfg := MMUConfig{Cell: 208, Slices: 1, Shared: 100_000, PGs: make([]PGConfig, 8), Queues: make([]QueueConfig, 8)}
	for i := range cfg.Queues {
		cfg.Queues[i].Limit = Alpha(0)
	}
	m := NewMMU(cfg)
	for i := range 50_000 {
		if r := m.Admit(1, 1, 1); r != record.NoReason {
			t.Fatalf("frame %d: %v", i, r)
		}
	}
	if r := m.Admit(1, 1, 1); r != record.EgressLimit {
		t.Errorf("beyond the limit: %v", r)
	}
	if _, _, h := m.Use(1); h != 0 || m.XOFF(1) {
		t.Error("lossy PG used headroom or raised XOFF")
	}
}

// TestSC13Cells: rounding and release order.
func TestSC13Cells(t *testing.T) {
	for _, c := range [][3]int{
		{208, 64, 1},
		{208, 208, 1},
		{208, 209, 2},
		{208, 1082, 6},
		{208, 9216, 45},
		{256, 256, 1},
		{256, 257, 2},
		{256, 9216, 36},
		{254, 9216, 37},
		{208, 0, 1},
	} {
		m := NewMMU(MMUConfig{Cell: int32(c[0])})
		if n := m.Cells(c[1]); int(n) != c[2] {
			t.Errorf("cell %d, %d B: %d cells, want %d", c[0], c[1], n, c[2])
		}
	}
	cfg := lossless(1, PGConfig{Headroom: 20, Min: 5, Limit: Limit{Mode: Static, Bytes: 10 * 208}})
	cfg.Shared = 100
	m := NewMMU(cfg)
	fill(m, 0, 1, 25)
	var got string
	for range 25 {
		g, s, h := m.Use(0)
		m.Release(0, 0, 1)
		g2, s2, h2 := m.Use(0)
		switch {
		case h2 < h:
			got += "h"
		case s2 < s:
			got += "s"
		case g2 < g:
			got += "m"
		}
	}
	if want := "hhhhhhhhhhssssssssssmmmmm"; got != want {
		t.Errorf("released %s, want %s", got, want)
	}
	if err := m.Check(); err != nil || m.Stored() != 0 {
		t.Error(err, m.Stored())
	}
}

// TestSXonOffset: XON compares with the current threshold, headroom must be empty first.
func TestSXonOffset(t *testing.T) {
	cfg := lossless(1, PGConfig{Headroom: 100, Limit: Limit{Mode: Static, Bytes: 50 * 208}, XONOffset: 12 * 208})
	cfg.Shared = 1000
	m := NewMMU(cfg)
	fill(m, 0, 1, 70)
	n := 0
	for m.XOFF(0) {
		m.Release(0, 0, 1)
		n++
	}
	if n != 20+12 {
		t.Errorf("XON after %d cells, want 32", n)
	}
}

// TestR18ShrunkPool: a pool shrunk below its use gives threshold 0 and XOFF.
func TestR18ShrunkPool(t *testing.T) {
	cfg := lossless(2, PGConfig{Headroom: 100, Limit: Alpha(0)})
	cfg.Shared = 1000
	m := NewMMU(cfg)
	fill(m, 0, 1, 300)
	m.SetShared(200)
	if !m.XOFF(0) || m.SharedFree(0) != 0 {
		t.Error("no XOFF after the pool shrank")
	}
	m.SetShared(1000)
	if m.XOFF(0) {
		t.Error("XOFF stays after the pool is back")
	}
}

func ExampleAlpha() {
	fmt.Println(Alpha(-3), Alpha(3))
	// Output: {2 1 8 0} {2 8 1 0}
}
