package gnmi

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/rocemu/rocemu/telemetry/otlp"
)

// Who subscribes has the last sample and then the end of the stream, before the
// server is gone.
func TestStreamsEndWithTheLastSample(t *testing.T) {
	s := NewStore("leaf1", otlp.TimeMap{Epoch: epoch})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := Serve(l, s)
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := pb.NewGNMIClient(conn)
	s.Publish(sample(1, 1, 0, 0))
	st := subscribe(t, c, pb.SubscriptionList_STREAM, &pb.Subscription{Path: path(outPkts)})
	next(t, st)
	next(t, st)
	poll := subscribe(t, c, pb.SubscriptionList_POLL, &pb.Subscription{Path: path(outPkts)})
	if err := poll.Send(&pb.SubscribeRequest{Request: &pb.SubscribeRequest_Poll{Poll: &pb.Poll{}}}); err != nil {
		t.Fatal(err)
	}
	next(t, poll)
	next(t, poll)
	s.Publish(sample(7, 1, 0, 0))
	Stop(g, s)
	if n, _ := next(t, st); n.Update[0].Val.GetUintVal() != 70 {
		t.Errorf("last sample %v, want that of 7 us", n)
	}
	for name, st := range map[string]pb.GNMI_SubscribeClient{"stream": st, "poll": poll} {
		if r, err := st.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("%s ends with %v, %v", name, r, err)
		}
	}
}

// A dial-out that is closed as soon as there is a sample has delivered it; one
// to a collector that reads nothing gives up.
func TestDialOutCloses(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	col := &listener{}
	defer col.serve(t, lis, "Nokia.SROS.DialoutTelemetry").Stop()
	deaf, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	publish := func(to string) (uint64, time.Duration) {
		s := NewStore("leaf1", otlp.TimeMap{Epoch: epoch})
		p, err := Publish(s, DialOut{Destinations: []string{to}, Target: countersDB, Paths: []*pb.Path{path("COUNTERS/Ethernet0")}, Encoding: pb.Encoding_JSON_IETF})
		if err != nil {
			t.Fatal(err)
		}
		s.Publish(sample(1, 1, 0, 0))
		t0 := time.Now()
		p.Close()
		sent, _ := p.Sent()
		return sent, time.Since(t0)
	}
	const times = 20
	for range times {
		if sent, _ := publish(lis.Addr().String()); sent != 1 {
			t.Fatalf("%d messages sent", sent)
		}
	}
	col.mu.Lock()
	if len(col.got) != times {
		t.Errorf("%d messages came, want %d", len(col.got), times)
	}
	col.mu.Unlock()
	if sent, took := publish(deaf.Addr().String()); sent != 0 || took < lastWords/2 || took > 2*lastWords {
		t.Errorf("nobody reads: %d sent, closed after %v", sent, took)
	}
}
