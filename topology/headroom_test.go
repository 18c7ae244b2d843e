package topology

import (
	"testing"

	"github.com/rocemu/rocemu/clock"
)

const cable100m = 500 * clock.Nanosecond

// TestArticle408 is switch cases C14 to C16: the article's figure by cable
// length and by rate.
func TestArticle408(t *testing.T) {
	for m, want := range map[int64]int64{5: 267, 40: 319, 100: 408, 300: 706, 500: 1003, 1000: 1747, 2000: 3235} {
		h := Article408(100*clock.Gbps, clock.Duration(m*5000), 208, 0)
		if h.Cells != want {
			t.Errorf("C15 %d m: %d cells, want %d", m, h.Cells, want)
		}
	}
	for g, want := range map[int64]int64{10: 140, 25: 185, 40: 229, 50: 259, 100: 408, 200: 706, 400: 1301} {
		h := Article408(clock.Rate(g)*clock.Gbps, cable100m, 208, 0)
		if h.Cells != want {
			t.Errorf("C16 %dG: %d cells, want %d", g, h.Cells, want)
		}
	}
	h := Article408(100*clock.Gbps, cable100m, 208, 0)
	if h.Bytes != 84864 || Article408(100*clock.Gbps, cable100m, 256, 0).Bytes != 104448 {
		t.Errorf("C14 bytes: %d", h.Bytes)
	}
	if h.Span != 2738880 {
		t.Errorf("T = %v, want 2738.88ns", h.Span)
	}
}

// TestWorstPacket is switch §2.2: cells that a span holds by packet size.
func TestWorstPacket(t *testing.T) {
	for l, want := range map[int]int64{64: 408, 208: 151, 209: 300, 1086: 186, 4170: 189, 9216: 180} {
		if h := Article408(100*clock.Gbps, cable100m, 208, l); h.Cells != want {
			t.Errorf("%d B: %d cells, want %d", l, h.Cells, want)
		}
	}
	for cell, want := range map[int64]int{208: 64, 256: 64, 254: 64, 192: 64, 96: 97, 144: 145} {
		if got := worstPacket(cell); got != want {
			t.Errorf("cell %d: worst packet %d, want %d", cell, got, want)
		}
	}
}

// TestHeadroomBudget is switch case C22.
func TestHeadroomBudget(t *testing.T) {
	up := Article408(100*clock.Gbps, cable100m, 256, 0).Cells
	down := Article408(25*clock.Gbps, cable100m, 256, 0).Cells
	if leaf := 8*up + 48*down; leaf != 12144 || leaf*256 != 3108864 {
		t.Errorf("leaf budget %d", leaf)
	}
	if spine := 64 * up; spine != 26112 || spine*208 != 5431296 {
		t.Errorf("spine budget %d", spine)
	}
}

// TestVendorFormulas is switch case C18.
func TestVendorFormulas(t *testing.T) {
	const g = clock.Gbps
	for _, c := range []struct {
		name            string
		in              NVIDIAInput
		xon, xoff, size int64
	}{
		{"SPC3 100G 40m", NVIDIAInput{100 * g, 40, 9100, 1024, 50, 144, 4, false}, 19456, 51200, 70656},
		{"SPC3 400G 300m", NVIDIAInput{400 * g, 300, 9100, 1024, 50, 144, 8, false}, 38912, 272384, 320512},
		{"SPC4 200G 40m", NVIDIAInput{200 * g, 40, 9100, 1024, 50, 192, 4, true}, 19456, 65536, 84992},
		{"SPC4 800G 300m", NVIDIAInput{800 * g, 300, 9100, 1024, 50, 192, 8, true}, 38912, 474112, 522240},
		{"small, cell 96", NVIDIAInput{100 * g, 100, 9100, 1024, 100, 96, 4, false}, 19456, 97280, 0},
		{"small, cell 144", NVIDIAInput{100 * g, 100, 9100, 1024, 100, 144, 4, false}, 19456, 144384, 0},
		{"small, cell 192", NVIDIAInput{100 * g, 100, 9100, 1024, 100, 192, 4, true}, 19456, 149504, 0},
	} {
		h, err := HeadroomNVIDIA(c.in)
		if err != nil {
			t.Fatal(err)
		}
		if h.XON != c.xon || h.XOFF != c.xoff || c.size != 0 && h.Size != c.size {
			t.Errorf("%s: %+v, want %d %d %d", c.name, h, c.xon, c.xoff, c.size)
		}
	}
	for _, c := range []struct {
		rate      clock.Rate
		len, want int64
	}{{100 * g, 100, 62841}, {400 * g, 100, 217941}, {400 * g, 5, 135541}} {
		if got := HeadroomMLX5(c.rate, c.len, 4096); got != c.want {
			t.Errorf("mlx5 %v %d m: %d, want %d", c.rate, c.len, got, c.want)
		}
	}
	if HeadroomMLX5(100*g, 100, 9216) != 76767 || HeadroomMLX5(10*g, 100, 4096) != HeadroomMLX5(40*g, 100, 4096) {
		t.Error("mlx5 9216 or the 40G floor")
	}
	if h, _ := HeadroomIEEE(100*g, cable100m, 0, 208, 0); h.Cells <= 449 {
		t.Errorf("IEEE quanta: %d cells, want above 449", h.Cells)
	}
}

// TestHeadroomAuto computes the rule by hand for the default uplink.
func TestHeadroomAuto(t *testing.T) {
	h := HeadroomAuto(HeadroomInput{100 * clock.Gbps, cable100m, 9216, clock.Microsecond, 500 * clock.Nanosecond, 208, 0})
	// T = 738.88 + 6.72 + 1000 + 1000 + 500 = 3245.6 ns; /6.72 = 482.97.
	if h.InFlight != 483 || h.Raiser != 45 || h.Cells != 555 || h.Reserve != 27 {
		t.Errorf("auto: %+v", h)
	}
}
