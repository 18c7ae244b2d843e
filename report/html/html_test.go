package html

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/report"
)

// fixture writes an output directory and reads it back.
func fixture(t *testing.T, r *report.Result, files map[string]string) *Input {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := report.WriteJSON(f, r); err != nil {
		t.Fatal(err)
	}
	f.Close()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func result() *report.Result {
	leaf := &report.SwitchCounters{Ports: map[string]*report.PortCounters{
		"1": {Peer: "rnic1:1", TxBytes: 100, RxBytes: 900},
		"2": {Peer: "rnic2:1", TxBytes: 50, PFC: map[string]*report.PFCCounters{"3": {TxPause: 4, TxPauseNS: 2_000_000}}},
	}}
	return &report.Result{
		Schema: 1, Name: "<b>evil</b>", Verdict: report.Stalled, VerdictReason: "nothing is due", VirtualNS: 10_000_000,
		Totals: report.Totals{Flows: 2, DroppedFrames: 3, DropsByReason: map[string]uint64{"buffer_headroom": 3}, Retransmitted: 5, PauseFrames: 4},
		Flows: map[string]*report.FlowLine{"bulk": {
			Verb: "write", Flows: 2, Requests: 2, Completed: 1, Status: "unfinished", Why: "bulk: waits for PSN 7",
			FCT: &report.Dist{P50: 1000, P99: 2000, Max: 2000},
		}},
		RNICs:    map[string]*report.RNICCounters{"rnic1": {}, "rnic2": {}},
		Switches: map[string]*report.SwitchCounters{"leaf1": leaf},
	}
}

const (
	flowsCSV = "flow,from,to,verb,requests,completed,failed,status,bytes,bytes_done,first_start_ns,last_end_ns,fct_ns,slowdown,goodput_bps,retransmitted_packets,last_progress_ns,why\n" +
		"bulk[rnic1>rnic2#1],rnic1,rnic2,write,1,1,0,success,1000,1000,0,2000.5,2000.5,1.25,4000000,5,2000.5,\n"
	seriesCSV = "time_ns,device,port,metric,index,value,unit\n" +
		"1000,leaf1,2,queue_occupancy,3,5000,By\n2000,leaf1,2,queue_occupancy,3,0,By\n1000,rnic2,,rnic_rx_bytes,,1000,By\n4000,rnic2,,rnic_rx_bytes,,4000,By\n"
	chainsJSON = `{"flow":"bulk[rnic1>rnic2#1]","qp":17,"psn":5,"cause":"fault","outcome":"recovered","retries":1,"retransmitted_packets":2,"begin_ns":10,"end_ns":2000,"steps":[` +
		`{"name":"loss","at_ns":10,"since_ns":10,"until_ns":10,"device":"leaf1","text":"PSN 5 lost"},{"name":"timeout","at_ns":900,"since_ns":10,"until_ns":900,"device":"rnic1","text":"t"}]}` + "\n"
	splitsJSON = `{"flow":"bulk","total_ns":100,"parts":[{"name":"host","span_ns":40},{"name":"pipeline","span_ns":60}]}` + "\n"
)

func TestPage(t *testing.T) {
	in := fixture(t, result(), map[string]string{"flows.csv": flowsCSV, "series.csv": seriesCSV, "chains.jsonl": chainsJSON, "splits.jsonl": splitsJSON})
	var b strings.Builder
	if err := Write(&b, in); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	for _, want := range []string{
		"3 frames dropped (buffer_headroom)", "stalled", "bulk did not finish: bulk: waits for PSN 7", "leaf1:2 held rnic2:1 paused on priority 3 longest: 2us, 20.0 % of the run",
		`class="paused"`, "Deepest queues", "leaf1:2/3", "PSN 5 lost", "Received by all RNICs", "Flow completion times", `title="pipeline 60ns"`, "2.001us",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("page lacks %q", want)
		}
	}
	for _, bad := range []string{"<b>evil", "http://", "https://", "src=", "<link", "NaN", "+Inf"} {
		if strings.Contains(got, bad) {
			t.Errorf("page has %q", bad)
		}
	}
	if o, c := strings.Count(got, "<svg"), strings.Count(got, "</svg>"); o != c || o < 4 {
		t.Errorf("%d drawings opened, %d closed", o, c)
	}
}

// A result alone, and a fabric too large to draw each RNIC, give a page too.
func TestPageOfLittleAndOfMuch(t *testing.T) {
	r := result()
	leaf := r.Switches["leaf1"]
	for i := range 100 {
		name := "rnic" + string(rune('a'+i%26)) + strings.Repeat("x", i/26)
		r.RNICs[name] = &report.RNICCounters{}
		leaf.Ports[strings.Repeat("9", 1+i%3)+string(rune('0'+i%10))] = &report.PortCounters{Peer: name + ":1", TxBytes: 7}
	}
	for _, r := range []*report.Result{r, {Schema: 1, Name: "empty"}} {
		var b strings.Builder
		if err := Write(&b, fixture(t, r, nil)); err != nil {
			t.Fatal(err)
		}
		if len(r.RNICs) > 0 && !strings.Contains(b.String(), " RNICs</text>") {
			t.Error("RNICs of a leaf are not drawn as one box")
		}
	}
}

func TestBrokenFilesNameTheLine(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "result.json"), []byte(`{"schema":1}`), 0o600)                                 //nolint:errcheck // checked by Read
	os.WriteFile(filepath.Join(dir, "series.csv"), []byte("time_ns,device,port,value\n1,x,1,3\n2,x,z,3\n"), 0o600) //nolint:errcheck // checked by Read
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "series.csv:3") {
		t.Errorf("error %v, want one that names series.csv:3", err)
	}
}
