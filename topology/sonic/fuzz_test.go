package sonic

import "testing"

// FuzzDevices: no text makes the reader panic, and what it accepts it writes
// as a layer and as a configuration that loads again.
func FuzzDevices(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"PORT": {"Ethernet0": {"speed": 1}}, "PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3"}}}`,
		`{"BUFFER_PG|a,b|3-4": {"profile": "NULL"}}`, `{"x": {"pfc_wd_action": "drop"}}`, `{"QUEUE": {"a|0": {"scheduler": "[SCHEDULER|s]"}}, "SCHEDULER": {"s": {"type": "STRICT"}}}`,
		`{"PFC_WD": {"GLOBAL": {"POLL_INTERVAL": "200"}, "e": {}}}`, `{"DEVICE_METADATA": {"localhost": {"hostname": "a"}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		sws, err := Devices([]File{{"f.json", text}}, nil)
		if err != nil || len(sws[0].Ports) > 64 {
			return
		}
		_ = Fabric(sws)
		for i := range sws[0].Ports {
			sws[0].Ports[i].Speed = max(sws[0].Ports[i].Speed, 1)
		}
		b, err := Export(sws[0])
		if err != nil {
			t.Fatal(err)
		}
		_, _ = Devices([]File{{"again.json", b}}, nil)
	})
}
