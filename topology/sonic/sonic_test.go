package sonic

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func fixture(t *testing.T, name string) File {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return File{name, b}
}

func lookup(t *testing.T) *Lookup {
	t.Helper()
	f := fixture(t, "pg_profile_lookup.ini")
	l, err := ParseLookup(f.Name, f.Text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func pod(t *testing.T) *Switch {
	t.Helper()
	sws, err := Devices([]File{fixture(t, "pod.json")}, lookup(t))
	if err != nil || len(sws) != 1 {
		t.Fatal(len(sws), err)
	}
	return sws[0]
}

// TestSC19Lookup: a port takes the row of its speed and cable.
func TestSC19Lookup(t *testing.T) {
	s := pod(t)
	want := Group{Set: true, Limit: Limit{Dynamic: true, Step: 0}, Guaranteed: 1248, Headroom: 59696, XONOffset: 2496}
	for _, g := range []int{3, 4} {
		if got := s.Ports[0].PG[g]; got != want {
			t.Errorf("PG %d: %+v, want %+v", g, got, want)
		}
	}
	if want.Headroom/208 != 287 || want.Guaranteed/208 != 6 || want.XONOffset/208 != 12 {
		t.Error("the row is not 287 cells of headroom, 6 guaranteed, 12 XON offset")
	}
	own := Group{Set: true, Limit: Limit{Dynamic: true, Step: -3}, Guaranteed: 1248, Headroom: 108160, XONOffset: 2288}
	if got := s.Ports[2].PG[3]; got != own {
		t.Errorf("a port with a profile of its own: %+v", got)
	}
	if _, err := lookup(t).Row(25000, 40); err == nil || !strings.Contains(err.Error(), "no row for speed 25000 and cable 40m") {
		t.Errorf("speed without a row: %v", err)
	}
	f := fixture(t, "pod.json")
	f.Text = []byte(strings.Replace(string(f.Text), `"Ethernet0": "40m"`, `"Ethernet0": "300m"`, 1))
	if _, err := Devices([]File{f}, lookup(t)); err == nil || !strings.Contains(err.Error(), "Ethernet0: pg_profile_lookup.ini: no row for speed 100000 and cable 300m") {
		t.Errorf("length without a row: %v", err)
	}
}

// TestSC29Maps: DSCP to class, group and queue by the AZURE maps, in both
// forms of reference and through the global row.
func TestSC29Maps(t *testing.T) {
	s := pod(t)
	for i := range s.Ports {
		p := &s.Ports[i]
		for _, c := range [][4]uint8{{3, 3, 3, 3}, {4, 4, 4, 4}, {5, 2, 0, 2}, {8, 0, 0, 0}, {46, 5, 0, 5}, {48, 6, 0, 6}, {0, 1, 0, 1}, {26, 1, 0, 1}} {
			tc := p.DSCPToTC[c[0]]
			if tc != c[1] || p.TCToPG[tc] != c[2] || p.TCToQueue[tc] != c[3] {
				t.Errorf("%s DSCP %d: TC %d PG %d queue %d, want %v", p.Name, c[0], tc, p.TCToPG[tc], p.TCToQueue[tc], c[1:])
			}
		}
		if p.Prios != 1<<3|1<<4 {
			t.Errorf("%s: lossless %b", p.Name, p.Prios)
		}
	}
}

// TestRest reads the remaining tables, with the differences between ports.
func TestRest(t *testing.T) {
	s := pod(t)
	p := s.Ports
	if s.Host != "leaf1" || s.ASIC != "th" || s.Pool != 10875072 || s.HeadroomPool != 4194112 || len(p) != 3 {
		t.Errorf("%+v", s)
	}
	if p[0].Name != "Ethernet0" || p[2].Name != "Ethernet12" || p[2].Speed != 40000 || p[2].MTU != 1522 || p[0].MTU != 9122 || p[2].Meters != 300 {
		t.Errorf("ports %+v", p)
	}
	if (p[0].Sched != [8]Sched{{false, 14}, {false, 14}, {false, 14}, {false, 15}, {false, 15}, {false, 1}, {true, 1}, {false, 1}}) || p[2].Sched[0] != (Sched{false, 1}) {
		t.Errorf("schedulers %v, %v", p[0].Sched, p[2].Sched)
	}
	if w := p[1].WRED[3]; w == nil || *w != (WRED{1048576, 2097152, 5, true, true}) || p[1].WRED[0] != nil {
		t.Errorf("WRED %v", p[1].WRED)
	}
	if p[0].Lossy != (Limit{Dynamic: true, Step: 3}) {
		t.Errorf("lossy %v", p[0].Lossy)
	}
	if d := p[0].Watchdog; d == nil || *d != (Watchdog{400, 600, 200, "drop"}) || p[1].Watchdog != nil {
		t.Errorf("watchdog %v %v", p[0].Watchdog, p[1].Watchdog)
	}
	if !slices.ContainsFunc(s.Notes, func(n string) bool { return n == "table VLAN (1 rows) is ignored" }) {
		t.Errorf("notes %q", s.Notes)
	}
	layer := string(s.Layer())
	for _, want := range []string{
		"buffer:\n  size: 10875072B\n  headroom_pool: 4194112B", "pfc:\n  priorities: [3, 4]\n  3: {alpha: 1, guaranteed: 1248B, xon_offset: 2496B, headroom: 59696B}",
		"ports:\n", "  3:  # Ethernet12\n    mtu: 1522B", "3: {alpha: 1/8, guaranteed: 1248B, xon_offset: 2288B, headroom: 108160B}", "pmax: 0.05, mark: true, drop_not_ect: true}",
	} {
		if !strings.Contains(layer, want) {
			t.Errorf("layer lacks %q:\n%s", want, layer)
		}
	}
}

// TestErrors: every mistake names file, table, key, field, value and what is
// allowed.
func TestErrors(t *testing.T) {
	text := string(fixture(t, "pod.json").Text)
	for _, c := range [][3]string{
		{`"xoff": "108160"`, `"xoff": "lots"`, `bad.json: BUFFER_PROFILE|own_profile|xoff: value "lots": must be a whole number 0..`},
		{`"dynamic_th": "-3"`, `"dynamic_th": "8"`, `BUFFER_PROFILE|own_profile|dynamic_th: value "8": must be a whole number -8..7`},
		{`"profile": "own_profile"`, `"profile": "my_profile"`, `BUFFER_PG|Ethernet12|3-4|profile: value "my_profile": no such row of BUFFER_PROFILE; there are egress_lossless_profile,`},
		{`"[SCHEDULER|scheduler.1]"`, `"[QUEUE|scheduler.1]"`, `|scheduler: value "[QUEUE|scheduler.1]": must refer to a row of SCHEDULER`},
		{`"Ethernet12|3-4"`, `"Ethernet12|4-3"`, `BUFFER_PG|Ethernet12|4-3: value "Ethernet12|4-3": key must be`},
		{`"Ethernet0,Ethernet4,Ethernet12|0-2"`, `"Ethernet0,Ethernet8|0-2"`, `value "Ethernet8": no such port`},
		{`"pfc_enable": "3,4"}`, `"pfc_enable": "3,9"}`, `pfc_enable: value "3,9": must be priorities 0..7`},
		{`"ecn": "ecn_all"`, `"ecn": "ecn_al"`, `WRED_PROFILE|AZURE_LOSSLESS|ecn: value "ecn_al": must be ecn_none,`},
		{`"green_max_threshold": "2097152"`, `"green_max_threshold": "1"`, `must not be below green_min_threshold 1048576`},
		{`"detection_time": "400"`, `"detection_time": "50"`, `PFC_WD|Ethernet0|detection_time: value "50": must be a whole number 100..5000`},
		{`"POLL_INTERVAL": "200"`, `"POLL_INTERVAL": "500"`, `must not be below the poll interval 500`},
		{`"action": "drop"`, `"action": "kill"`, `value "kill": must be drop, forward or alert`},
		{`"46": "5"`, `"46": "9"`, `DSCP_TO_TC_MAP|AZURE|46: value "9": must be a whole number 0..7`},
		{`"40m", "Ethernet4"`, `"40", "Ethernet4"`, `CABLE_LENGTH|AZURE|Ethernet0: value "40": must be whole metres`},
		{`"type": "STRICT"`, `"type": "FAIR"`, `SCHEDULER|scheduler.2|type: value "FAIR": must be DWRR, WRR or STRICT`},
		{`"VLAN": {`, `"VLAN": [`, `bad.json:46: not a configuration`},
	} {
		bad := strings.Replace(text, c[0], c[1], 1)
		if bad == text {
			t.Fatalf("the fixture has no %s", c[0])
		}
		_, err := Devices([]File{{"bad.json", []byte(bad)}}, lookup(t))
		if err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s: got %v, want %s", c[1], err, c[2])
		}
	}
}

// TestFlattened: keys TABLE|row at the top level mean the same.
func TestFlattened(t *testing.T) {
	flat := `{"PORT|Ethernet0": {"speed": "100000"}, "CABLE_LENGTH|AZURE": {"Ethernet0": "5m"},
	"BUFFER_POOL|ingress_lossless_pool": {"type": "ingress", "mode": "dynamic"},
	"DEFAULT_LOSSLESS_BUFFER_PARAMETER|AZURE": {"default_dynamic_th": "-2"}, "BUFFER_PG|Ethernet0|3-4": {"profile": "NULL"}}`
	sws, err := Devices([]File{{"flat.json", []byte(flat)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := sws[0].Ports[0]
	if g := p.PG[4]; !g.Auto || g.Limit != (Limit{Dynamic: true, Step: -2}) || p.Prios != 0x18 || p.Speed != 100000 || p.Meters != 5 {
		t.Errorf("%+v", p)
	}
	if l := string(sws[0].Layer()); !strings.Contains(l, "3: {alpha: 1/4, guaranteed: 0B, xon_offset: 18KB, headroom: auto}") {
		t.Error(l)
	}
}

// TestRoundTrip: what is exported reads back as the same settings.
func TestRoundTrip(t *testing.T) {
	s := pod(t)
	b, err := Export(s)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Devices([]File{{"export.json", b}}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	s.ASIC = asicOf(s.HWSKU)
	if got, want := string(back[0].Layer()), string(s.Layer()); got != want {
		t.Errorf("read back:\n%s\nwant:\n%s", got, want)
	}
	again, err := Export(back[0])
	if err != nil || string(again) != string(b) {
		t.Errorf("a second export differs: %v", err)
	}
}

// shared is the folder of real files, absent outside the project's own place.
func shared(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("ROCEMU_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	dir = filepath.Join(dir, "files")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no real files here")
	}
	return dir
}

// TestRealFiles loads the five SONiC files that users have.
func TestRealFiles(t *testing.T) {
	dir := shared(t)
	read := func(name string) File {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Skip(err)
		}
		return File{name, b}
	}
	ini := read("sonic_pg_profile_lookup_msn2700.ini")
	l, err := ParseLookup(ini.Name, ini.Text)
	if err != nil || l.Len() != 15 {
		t.Fatal(l, err)
	}
	if r, err := l.Row(100000, 300); err != nil || r != (LookupRow{Size: 123904, XON: 19456, XOFF: 104448}) {
		t.Error(r, err)
	}
	for _, c := range []struct {
		name  string
		ports int
		prios uint8
		check func(s *Switch) bool
	}{
		{"sonic_config_db_msn2700_t0.json", 32, 0x18, func(s *Switch) bool {
			p := s.port("Ethernet124")
			return s.ASIC == "spectrum" && p.Speed == 50000 && p.Meters == 40 && p.PG[3].Auto && s.Ports[0].Speed == 10000
		}},
		{"sonic_buffers_dell6100.json", 44, 0x18, func(s *Switch) bool {
			return s.Pool == 10875072 && s.HeadroomPool == 4194112 && s.Ports[0].Lossy == Limit{Dynamic: true, Step: 3}
		}},
		{"sonic_qos_arista7050.json", 28, 0x18, func(s *Switch) bool {
			return s.Ports[0].DSCPToTC[46] == 5 && *s.Ports[0].WRED[3] == WRED{1048576, 2097152, 5, true, true} && s.Ports[0].Sched[0].Weight == 14
		}},
		{"sonic_pfcwd_config_params.json", 0, 0, func(s *Switch) bool {
			refused := 0
			for _, n := range s.Notes {
				if strings.Contains(n, "refused") {
					refused++
				}
			}
			return refused == 7
		}},
	} {
		sws, err := Devices([]File{read(c.name)}, nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		s := sws[0]
		if len(s.Ports) != c.ports || c.ports > 0 && s.Ports[c.ports-1].Prios != c.prios || !c.check(s) {
			t.Errorf("%s: %d ports, %s", c.name, len(s.Ports), fmt.Sprint(s))
		}
		if len(s.Notes) == 0 {
			t.Errorf("%s: nothing is said to be ignored", c.name)
		}
	}
}
