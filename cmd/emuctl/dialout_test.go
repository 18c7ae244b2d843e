package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"strings"
	"sync"
	"testing"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"

	"github.com/rocemu/rocemu/report"
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
		if p := dialed(t, how+l.Addr().String()); p.Exported == 0 || p.Exported+p.Dropped != p.Made || p.LastError != "" {
			t.Errorf("%sdial-out to a listener: %+v", how, p)
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
	srv.Stop()
	if p := dialed(t, l.Addr().String()); p.Made == 0 || p.Exported != 0 || p.Dropped != p.Made || !strings.Contains(p.LastError, "refused") {
		t.Errorf("dial-out to nobody: %+v", p)
	}
	var out bytes.Buffer
	emuctl([]string{"run", "../../examples/incast.yaml", "--dialout", l.Addr().String()}, &out, new(bytes.Buffer))
	if want := "samples did not reach " + l.Addr().String(); !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
	if emuctl([]string{"run", "../../examples/incast.yaml", "--dialout", "nowhere"}, new(bytes.Buffer), new(bytes.Buffer)) == 0 {
		t.Error("a destination without a port was accepted")
	}
}

// dialed runs a fabric that publishes to a listener and returns the account.
func dialed(t *testing.T, to string) *report.Pushed {
	t.Helper()
	var out, errs bytes.Buffer
	if code := emuctl([]string{"run", "../../examples/incast.yaml", "--dialout", to, "--json"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	var r report.Result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Telemetry == nil || r.Telemetry.DialOut == nil {
		t.Fatalf("no account of the dial-out: %v", err)
	}
	return r.Telemetry.DialOut
}

// Who takes the connection and never speaks got nothing, and the result says so.
func TestDialOutUnanswered(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := dialed(t, l.Addr().String())
	if want := l.Addr().String() + " had not answered when the run ended"; p.Made == 0 || p.Dropped != p.Made || p.LastError != want {
		t.Errorf("%+v, want %q", p, want)
	}
}

// noNames answers that there is no host of the name that is asked for.
func noNames(t *testing.T) {
	s, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	was := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("udp", s.LocalAddr().String())
	}}
	t.Cleanup(func() { net.DefaultResolver = was; s.Close() })
	go func() {
		b := make([]byte, 512)
		for {
			n, from, err := s.ReadFrom(b)
			if err != nil {
				return
			}
			b[2], b[3] = 0x81, 0x83      // an answer: no such name
			b[10], b[11], n = 0, 0, n-11 // without the question's EDNS record
			s.WriteTo(b[:n], from)       //nolint:errcheck // it asks again
		}
	}()
}

// A name that nobody has is told before the run, a malformed address ends it.
func TestDialOutToNoName(t *testing.T) {
	noNames(t)
	var out, errs bytes.Buffer
	code := emuctl([]string{"run", "../../examples/incast.yaml", "--dialout", "127.0.0.1:1,collector.invalid:57400"}, &out, &errs)
	if want := `warning: --dialout 127.0.0.1:1,collector.invalid:57400: no host is named "collector.invalid"`; code != 0 || strings.Count(errs.String(), want) != 1 {
		t.Errorf("exit code %d, no %q in %q", code, want, errs.String())
	}
	if strings.Contains(errs.String(), `"127.0.0.1"`) {
		t.Errorf("an address was looked up: %s", errs.String())
	}
	for _, args := range [][]string{{"observe", "--dialout", "collector"}, {"observe", "--gnmi", "0.0.0.0"}} {
		errs.Reset()
		if code := emuctl(append(args, "--nats", "nats://127.0.0.1:1"), new(bytes.Buffer), &errs); code != 2 || !strings.Contains(errs.String(), "HOST:PORT") {
			t.Errorf("%v: exit code %d, %s", args, code, errs.String())
		}
	}
}
