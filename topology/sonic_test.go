package topology

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/topology/sonic"
)

// fixtures reads from the sonic package's test data and from files.
func fixtures(files map[string]string) ReadFile {
	return func(_, name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return os.ReadFile(filepath.Join("sonic", "testdata", name))
	}
}

func loadWith(t *testing.T, text string, read ReadFile, sets ...string) (*Plan, []Warning) {
	t.Helper()
	p, ws, err := Resolve([]Source{{"fabric.yaml", []byte(text)}}, sets, nil, read)
	if err != nil {
		t.Fatal(err)
	}
	return p, ws
}

const sonicPod = `schema: 1
name: pod
topology:
  spines: 2
  leaves: 1
  servers: 1
  links: {server: {rate: 100Gbps, length: 40m}, uplink: {rate: 100Gbps, length: 40m}}
switches:
  devices:
    leaf1: {sonic: pod.json, lookup: pg_profile_lookup.ini, pfc: {response: 2us}}
`

// TestSC19Fabric: a fabric file that names config_db.json and the lookup table
// resolves to their settings, port by port, and its own keys win.
func TestSC19Fabric(t *testing.T) {
	p, ws := loadWith(t, sonicPod, fixtures(nil))
	d := p.Device("leaf1")
	s := d.Switch
	if s.ASIC != "th" || s.Cell != 208 || s.Slices != 4 || s.BufferBytes != 10875072 || s.HeadroomPool != 4194112 {
		t.Errorf("%+v", s)
	}
	a, b := &d.Ports[0], &d.Ports[2]
	if a.Headroom[3] != 287 || a.PFC.Guaranteed[3] != 6*208 || a.PFC.XONOffset[3] != 12*208 || a.PFC.Alpha[3] != (Alpha{1, 1}) || a.MTU != 9122 {
		t.Errorf("port 1: headroom %v, %+v", a.Headroom, a.PFC)
	}
	if b.Headroom[4] != 520 || b.PFC.Alpha[3] != (Alpha{1, 8}) || b.MTU != 1522 || b.PFC.Watchdog != nil {
		t.Errorf("port 3: headroom %v, %+v", b.Headroom, b.PFC)
	}
	if a.PFC.Watchdog == nil || a.PFC.Watchdog.Action != "drop" || a.PFC.Response.String() != "2us" {
		t.Errorf("port 1: %+v", a.PFC)
	}
	if a.QoS.DSCPToTC[26] != 1 || a.QoS.DSCPToTC[48] != 6 || a.QoS.TCToPG[5] != 0 || !a.QoS.Sched[6].Strict || a.QoS.Sched[3].Weight != 15 {
		t.Errorf("QoS %+v", a.QoS)
	}
	if e := a.ECN[3]; !e.On || e.KMin != 1048576 || e.PMax != 214748365 || !e.DropNotECT || a.ECN[0].On {
		t.Errorf("ECN %+v", a.ECN)
	}
	if len(ws) != 1 || ws[0].Code != "sonic-ignored" || !strings.Contains(ws[0].Text, "table VLAN (1 rows) is ignored") {
		t.Errorf("warnings %v", ws)
	}
	// The resolved text names no other file and gives the same plan.
	q, _, err := LoadBytes("resolved", p.Resolved())
	if err != nil || !reflect.DeepEqual(q.Device("leaf1"), d) {
		t.Errorf("resolved: %v", err)
	}
}

// TestSonicErrors: mistakes in a configuration fail the fabric file.
func TestSonicErrors(t *testing.T) {
	for _, c := range [][2]string{
		{"switches.devices.leaf1.sonic=nowhere.json", "cannot be read"},
		{"switches.devices.leaf1.sonic=bad.json", "bad.json: BUFFER_PROFILE|x|xoff: value \"y\""},
		{"switches.devices.leaf1.sonic=null", "belongs to sonic: FILE"},
	} {
		bad := map[string]string{"bad.json": `{"PORT": {"Ethernet0": {}}, "BUFFER_POOL": {"p": {"type": "ingress", "mode": "dynamic"}},
			"BUFFER_PROFILE": {"x": {"pool": "p", "size": "0", "xoff": "y", "dynamic_th": "0"}}, "BUFFER_PG": {"Ethernet0|3": {"profile": "x"}}}`}
		text := strings.Replace(sonicPod, "sonic: pod.json, ", "", 1)
		if !strings.HasSuffix(c[0], "null") {
			text = sonicPod
		}
		sets := []string{c[0]}
		if strings.HasSuffix(c[0], "null") {
			sets = nil
		}
		_, _, err := Resolve([]Source{{"fabric.yaml", []byte(text)}}, sets, nil, fixtures(bad))
		if err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v, want %q", c[0], err, c[1])
		}
	}
}

const tuned = `schema: 1
topology: {spines: 2, leaves: 2, servers: 3, links: {uplink: {length: 250m}}}
switches:
  all: {buffer: {headroom_pool: {size: 2MiB, cap_per_pg: 150KB}}}
  leaf:
    asic: td3
    qos: {dscp_to_tc: {34: 4}, tc_to_pg: {1: 0}, scheduler: {4: {weight: 20}}}
    pfc: {priorities: [3, 4], alpha: 1/16, guaranteed: 1024B, 4: {xoff: 300KB, headroom: 90KB}, watchdog: {detect: 300ms, restore: 400ms, poll: 100ms, action: forward}}
    lossy: {alpha: 1/2}
    ecn: {kmin: 50KB, kmax: 150KB, pmax: 0.3, 4: {kmin: 60KB, kmax: 60KB, pmax: 1, drop_not_ect: true}}
    ports: {uplink: {pfc: {alpha: 1/4, xon_offset: 9KB}, mtu: 4200B}, 2: {lossy: {limit: 200KB}, ecn: off}}
`

// TestSonicRoundTrip: what `emuctl export sonic` writes for a device gives, in
// place of its settings, the same switch.
func TestSonicRoundTrip(t *testing.T) {
	p, _ := loadWith(t, tuned, nil)
	d := p.Device("leaf1")
	s, err := p.Sonic(d)
	if err != nil {
		t.Fatal(err)
	}
	b, err := sonic.Export(s)
	if err != nil {
		t.Fatal(err)
	}
	plain := "schema: 1\ntopology: {spines: 2, leaves: 2, servers: 3, links: {uplink: {length: 250m}}}\nswitches: {devices: {leaf1: {sonic: back.json}}}\n"
	q, _ := loadWith(t, plain, fixtures(map[string]string{"back.json": string(b)}))
	e := q.Device("leaf1")
	if e.Switch.BufferBytes != d.Switch.BufferBytes || e.Switch.HeadroomPool != d.Switch.HeadroomPool || e.Switch.Cell != d.Switch.Cell {
		t.Errorf("%+v, want %+v", e.Switch, d.Switch)
	}
	for i := range d.Ports {
		a, b := &d.Ports[i], &e.Ports[i]
		if a.MTU != b.MTU || *a.QoS != *b.QoS || *a.ECN != *b.ECN || a.PFC.Lossless != b.PFC.Lossless || !reflect.DeepEqual(a.PFC.Watchdog, b.PFC.Watchdog) {
			t.Errorf("port %d: %+v %+v %+v, want %+v %+v %+v", i+1, b.QoS, b.ECN, b.PFC, a.QoS, a.ECN, a.PFC)
		}
		if (a.Lossy.Limit > 0 || b.Lossy.Limit > 0) && a.Lossy.Limit != b.Lossy.Limit || a.Lossy.Limit == 0 && *a.Lossy != *b.Lossy {
			t.Errorf("port %d: lossy %+v, want %+v", i+1, b.Lossy, a.Lossy)
		}
		for _, n := range []int{3, 4} {
			x, y := a.PFC, b.PFC
			if x.XOFF[n] != y.XOFF[n] || x.XOFF[n] == 0 && x.Alpha[n] != y.Alpha[n] || x.Guaranteed[n] != y.Guaranteed[n] || x.XONOffset[n] != y.XONOffset[n] ||
				q.headroomCap(e, b, n) != (p.headroomCap(d, a, n)+d.Switch.Cell-1)/d.Switch.Cell*d.Switch.Cell {
				t.Errorf("port %d priority %d: %+v cap %d, want %+v cap %d", i+1, n, y, q.headroomCap(e, b, n), x, p.headroomCap(d, a, n))
			}
		}
	}
	if p, _ := loadWith(t, tuned, nil, "switches.leaf.pfc.alpha=1/3"); p != nil {
		if _, err := p.Sonic(p.Device("leaf1")); err == nil || !strings.Contains(err.Error(), "leaf1:1: priority 3: alpha 1/3 has no dynamic_th") {
			t.Errorf("alpha 1/3: %v", err)
		}
	}
	if _, err := p.Sonic(p.Device("rnic1")); err == nil {
		t.Error("an RNIC was exported")
	}
}
