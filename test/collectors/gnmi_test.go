package collectors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rocemu/rocemu/report"
)

// gnmiRun is a run that can be paused, with a gNMI server for each switch.
type gnmiRun struct {
	t     *testing.T
	dir   string
	env   []string
	first int // port of the first switch's server
	done  func()
}

// startGNMI starts a run that lasts until it is stopped.
func startGNMI(t *testing.T) *gnmiRun {
	t.Helper()
	g := &gnmiRun{t: t, dir: filepath.Join(t.TempDir(), "out"), first: ports(t, 4)}
	g.env = append(emuctl(t).Environ(), "XDG_CONFIG_HOME="+t.TempDir())
	cmd := emuctl(
		t, "run", filepath.Join("..", "..", "examples", "incast.yaml"), "--interactive", "--gnmi", local(g.first), "--out", g.dir,
		"--set", "workload.burst.count=1000000", "--set", "run.limit=10000s",
	)
	cmd.Env = g.env
	g.done = start(t, cmd, local(g.first+3))
	return g
}

// ctl runs a verb on the running fabric.
func (g *gnmiRun) ctl(args ...string) error {
	cmd := emuctl(g.t, args...)
	cmd.Env = g.env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// end stops the paused run where it stands and reads its result.
func (g *gnmiRun) end() *report.Result {
	g.t.Helper()
	if err := g.ctl("stop"); err != nil {
		g.t.Fatal(err)
	}
	var res *report.Result
	within(g.t, time.Minute, func() (err error) {
		res, err = report.ReadResult(g.dir)
		return err
	})
	g.done()
	return res
}

// addr is the server of switch i: spines, then leaves.
func (g *gnmiRun) addr(i int) string { return local(g.first + i) }

const leaf2 = 3 // its server: after spine1, spine2, leaf1

// update is one value of a gNMI answer as grpcurl prints it.
type update struct {
	path string
	at   int64
	text string // decoded
}

// grpcurl subscribes and returns the updates, in order, and whether a sync
// response came. A stream lasts as long as is asked.
func (g *gnmiRun) grpcurl(i int, request string, lasts time.Duration) (list []update, synced bool) {
	g.t.Helper()
	args := []string{"-plaintext", "-d", request}
	if lasts > 0 {
		args = append(args, "-max-time", strconv.FormatFloat(lasts.Seconds(), 'f', 1, 64))
	}
	cmd := exec.Command(program(g.t, "grpcurl"), append(args, g.addr(i), "gnmi.gNMI/Subscribe")...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil && (lasts == 0 || !strings.Contains(errs.String(), "DeadlineExceeded")) {
		g.t.Fatalf("grpcurl: %v: %s", err, errs.String())
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var m struct {
			SyncResponse bool
			Update       struct {
				Timestamp string
				Update    []struct {
					Path struct {
						Elem []struct {
							Name string
							Key  map[string]string
						}
					}
					Val struct {
						JSONIetfVal []byte `json:"jsonIetfVal"`
						UintVal     string
					}
				}
			}
		}
		if err := dec.Decode(&m); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return list, synced
		} else if err != nil {
			g.t.Fatalf("%v in %.200s", err, out)
		}
		synced = synced || m.SyncResponse
		for _, u := range m.Update.Update {
			path := ""
			for _, e := range u.Path.Elem {
				path += "/" + e.Name
			}
			list = append(list, update{path, number(g.t, m.Update.Timestamp), strings.Trim(string(u.Val.JSONIetfVal), `"`) + u.Val.UintVal})
		}
	}
}

// request writes a subscription to one field of leaf2's port 4.
func request(mode, field string) string {
	return fmt.Sprintf(`{"subscribe":{"prefix":{"target":"COUNTERS_DB"},"encoding":"JSON_IETF",%s,"path":{"elem":[{"name":"COUNTERS"},{"name":"Ethernet3"},{"name":%q}]}}]}}`, mode, field)
}

const (
	once     = `"mode":"ONCE","subscription":[{"mode":"TARGET_DEFINED"`
	sampled  = `"mode":"STREAM","subscription":[{"mode":"SAMPLE","sampleInterval":"100000"`
	onChange = `"mode":"STREAM","subscription":[{"mode":"ON_CHANGE"`
)

// TestGNMI reads the counters of switches with grpcurl and gnmi_cli while a
// fabric runs, and when it is paused: then they must be those of the result of
// the run that is stopped there.
func TestGNMI(t *testing.T) {
	program(t, "grpcurl")
	cli := program(t, "gnmi_cli")
	g := startGNMI(t)
	within(t, time.Minute, func() error { return g.ctl("counters", "leaf2", "--json") })
	const frames = "SAI_PORT_STAT_IF_OUT_UCAST_PKTS"
	for how, mode := range map[string]string{"sample": sampled, "on-change": onChange} {
		list, synced := g.grpcurl(leaf2, request(mode, frames), 4*time.Second)
		checkStream(t, how, list, synced)
	}
	if err := g.ctl("pause"); err != nil {
		t.Fatal(err)
	}
	got := g.settled(cli, frames)
	fields := g.columns()
	queues := g.cli(cli, "COUNTERS_DB", "COUNTERS/Ethernet3/Queues/Ethernet3:3")
	marks := g.cli(cli, "COUNTERS_DB", "PERSISTENT_WATERMARKS/Ethernet3/Queues/Ethernet3:3/SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES")
	oc := g.cli(cli, "", "interfaces/interface[name=Ethernet3]/state/counters/out-pkts")
	ecn := g.cli(cli, "", "qos/interfaces/interface[interface-id=Ethernet3]/output/queues/queue[name=3]/state/ecn-marked-pkts")
	live := g.counters("leaf2:4")
	for _, c := range []struct {
		metric string
		out    string
	}{
		{"tx_frames", got},
		{"tx_frames", oc},
		{"queue_tx_frames", queues},
		{"queue_ecn_marked", queues},
		{"queue_ecn_marked", ecn},
		{"queue_watermark", marks},
		{"tx_bytes", fields["SAI_PORT_STAT_IF_OUT_OCTETS"]},
		{"rx_bytes", fields["SAI_PORT_STAT_IF_IN_OCTETS"]},
		{"rx_frames", fields["SAI_PORT_STAT_IF_IN_UCAST_PKTS"]},
		{"pfc_tx_pause", fields["SAI_PORT_STAT_PFC_3_TX_PKTS"]},
	} {
		if !holds(c.out, live[c.metric]) {
			t.Errorf("%s is %d, gNMI says %s", c.metric, live[c.metric], c.out)
		}
	}
	// The last window before the pause may be a part of one, which is run at the
	// end: at most a microsecond of 100 Gbit/s.
	port := g.end().Switches["leaf2"].Ports["4"]
	if more := port.TxFrames - live["tx_frames"]; live["tx_frames"] == 0 || more > 12 || uint64(port.Queue["3"].Watermark) != live["queue_watermark"] || port.Queue["3"].ECNMarked-live["queue_ecn_marked"] > 12 {
		t.Errorf("the result has %+v, queue 3 %+v; when paused %v", port, port.Queue["3"], live)
	}
}

// counters reads those of a port from the paused fabric; of queues, the third's.
func (g *gnmiRun) counters(where string) map[string]uint64 {
	g.t.Helper()
	cmd := emuctl(g.t, "counters", where, "--json")
	cmd.Env = g.env
	out, err := cmd.Output()
	if err != nil {
		g.t.Fatal(err)
	}
	var list []struct {
		Metric, Index string
		Value         uint64
	}
	if err := json.Unmarshal(out, &list); err != nil {
		g.t.Fatalf("%v in %.200s", err, out)
	}
	all := map[string]uint64{}
	for _, v := range list {
		if v.Index == "" || v.Index == "3" {
			all[v.Metric] = v.Value
		}
	}
	return all
}

// checkStream demands a sync response, growing values at growing times, and of
// on-change nothing twice.
func checkStream(t *testing.T, how string, list []update, synced bool) {
	t.Helper()
	if !synced || len(list) < 3 {
		t.Fatalf("%s: %d updates, sync response %v", how, len(list), synced)
	}
	n := 0
	var last update
	for _, u := range list {
		if strings.HasSuffix(u.path, "/skipped-samples") {
			continue // more samples were taken than were read
		}
		if n++; n > 1 && (u.at <= last.at || number(t, u.text) < number(t, last.text) || how == "on-change" && u.text == last.text) {
			t.Errorf("%s: %+v after %+v", how, u, last)
		}
		last = u
	}
	t.Logf("%s: %d updates, up to %s", how, n, last.text)
}

// settled asks with both clients until they have what the paused fabric itself
// says after them: then nothing is under way any longer.
func (g *gnmiRun) settled(cli, field string) (value string) {
	g.t.Helper()
	within(g.t, 30*time.Second, func() error {
		list, synced := g.grpcurl(leaf2, request(once, field), 0)
		if len(list) != 1 || !synced {
			return fmt.Errorf("ONCE: %+v, sync response %v", list, synced)
		}
		value = list[0].text
		other := g.cli(cli, "COUNTERS_DB", "COUNTERS/Ethernet3/"+field)
		if now := strconv.FormatUint(g.counters("leaf2:4")["tx_frames"], 10); value != now || !strings.Contains(other, value) {
			return fmt.Errorf("%s, then %s, but the fabric has %s", value, other, now)
		}
		return nil
	})
	return value
}

// columns reads all fields of a port.
func (g *gnmiRun) columns() map[string]string {
	g.t.Helper()
	list, _ := g.grpcurl(leaf2, strings.Replace(request(once, ""), `,{"name":""}`, "", 1), 0)
	if len(list) != 1 {
		g.t.Fatalf("ONCE of a port: %+v", list)
	}
	var all map[string]any
	if err := json.Unmarshal([]byte(list[0].text), &all); err != nil {
		g.t.Fatal(err)
	}
	out := map[string]string{}
	for k, v := range all {
		out[k] = fmt.Sprint(v)
	}
	return out
}

// cli asks once with gnmi_cli and returns what it prints.
func (g *gnmiRun) cli(bin, target, query string) string {
	g.t.Helper()
	out, err := exec.Command(bin, "-a", g.addr(leaf2), "-insecure", "-t", target, "-q", query, "-qt", "once", "-timeout", "10s").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("JsonVal")) {
		g.t.Fatalf("gnmi_cli %s: %v: %s", query, err, out)
	}
	return string(out)
}

// holds says whether gnmi_cli printed a number; it writes large ones as
// floating point.
func holds(out string, n uint64) bool {
	for _, word := range strings.FieldsFunc(out, func(r rune) bool { return strings.ContainsRune(" \n{}[]:\",", r) }) {
		if f, err := strconv.ParseFloat(word, 64); err == nil && uint64(f) == n {
			return true
		}
	}
	return false
}
