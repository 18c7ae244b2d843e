package main

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"testing"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
)

// TestDialOut receives what the switches of a run publish by themselves.
func TestDialOut(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	methods, paths := map[string]bool{}, map[string]bool{}
	srv := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		for {
			m := new(pb.SubscribeResponse)
			if err := s.RecvMsg(m); err != nil {
				return err
			}
			name, _ := grpc.MethodFromServerStream(s)
			mu.Lock()
			methods[name] = true
			for _, u := range m.GetUpdate().GetUpdate() {
				text := ""
				for _, e := range u.Path.Elem {
					text += "/" + e.Name
				}
				if strings.Contains(string(u.Val.GetJsonIetfVal()), "SAI_") {
					paths[text] = true
				}
			}
			mu.Unlock()
		}
	}))
	go srv.Serve(l) //nolint:errcheck // ends with Stop
	defer srv.Stop()
	for _, how := range []string{"", "sonic:"} {
		var out, errs bytes.Buffer
		if code := emuctl([]string{"run", "../../examples/incast.yaml", "--dialout", how + l.Addr().String(), "--json"}, &out, &errs); code != 0 {
			t.Fatalf("exit code %d: %s", code, errs.String())
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if !methods["/Nokia.SROS.DialoutTelemetry/Publish"] || !methods["/gnmi.sonic.gNMIDialOut/Publish"] {
		t.Errorf("methods %v", methods)
	}
	for _, want := range []string{"/COUNTERS/Ethernet*", "/COUNTERS/Ethernet*/Queues", "/COUNTERS/Ethernet*/PriorityGroups"} {
		if !paths[want] {
			t.Errorf("no %s among %v", want, paths)
		}
	}
	if emuctl([]string{"run", "../../examples/incast.yaml", "--dialout", "nowhere"}, new(bytes.Buffer), new(bytes.Buffer)) == 0 {
		t.Error("a destination without a port was accepted")
	}
}
