package sim_test

import "testing"

// TestRows: a result tells of every lossless class of every port, used or not,
// and of PFC of every class that carried frames.
func TestRows(t *testing.T) {
	const text = `
schema: 1
name: rows
topology: {spines: 1, leaves: 1, servers: 3}
workload:
  - {name: u, from: rnic1, to: rnic2, transport: udp, size: 100B, dscp: 0}
`
	r := run(t, parse(t, text), 1)
	idle := r.Switches["leaf1"].Ports["3"]
	if idle.PFC["3"] == nil || idle.PG["3"] == nil || idle.Queue["3"] == nil {
		t.Errorf("the idle port's lossless class is missing: %v %v %v", idle.PFC, idle.PG, idle.Queue)
	}
	if idle.Queue["0"] != nil || idle.PFC["0"] != nil {
		t.Errorf("classes that nothing used: %v %v", idle.Queue, idle.PFC)
	}
	if p := r.Switches["leaf1"].Ports["2"]; p.Queue["0"] == nil || p.PFC["0"] == nil || p.Queue["0"].TxFrames != 1 {
		t.Errorf("the class in use is missing: %v %v", p.Queue, p.PFC)
	}
}
