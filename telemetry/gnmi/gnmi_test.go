package gnmi

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/telemetry/otlp"
)

var epoch = time.Unix(1_800_000_000, 0)

// sample has two switches; the second must not show in the first's answers.
func sample(us, pauses, depth, mark int64) *counters.Snapshot {
	pt := func(dev int32, id counters.ID, port int16, index int8, v int64) counters.Point {
		return counters.Point{Dev: dev, ID: id, Port: port, Index: index, Value: v}
	}
	return &counters.Snapshot{At: clock.Time(us * int64(clock.Microsecond)), Devices: []string{"leaf1", "leaf2"}, Points: []counters.Point{
		pt(0, counters.TxFrames, 1, -1, 10*us), pt(0, counters.PFCTxPause, 1, 3, pauses), pt(0, counters.QueueMarked, 1, 3, 4),
		pt(0, counters.QueueOccupancy, 1, 3, depth), pt(0, counters.QueueMark, 1, 3, mark), pt(0, counters.PFCRxPaused, 1, 3, 7_500_000),
		pt(0, counters.TxFrames, 2, -1, 1), pt(1, counters.PFCTxPause, 1, 3, 999),
	}}
}

func start(t *testing.T) (*Store, pb.GNMIClient) {
	t.Helper()
	s := NewStore("leaf1", otlp.TimeMap{Epoch: epoch, Scale: 1000})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := Serve(l, s)
	t.Cleanup(g.Stop)
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return s, pb.NewGNMIClient(conn)
}

func path(s string) *pb.Path {
	p := &pb.Path{}
	for _, e := range strings.Split(s, "/") {
		name, key, ok := strings.Cut(strings.TrimSuffix(e, "]"), "[")
		k, v, _ := strings.Cut(key, "=")
		if ok {
			p.Elem = append(p.Elem, elem(name, k, v))
		} else {
			p.Elem = append(p.Elem, elem(name))
		}
	}
	return p
}

func get(t *testing.T, c pb.GNMIClient, target, p string, enc pb.Encoding) (string, error) {
	t.Helper()
	r, err := c.Get(context.Background(), &pb.GetRequest{Prefix: &pb.Path{Target: target}, Path: []*pb.Path{path(p)}, Encoding: enc})
	if err != nil {
		return "", err
	}
	v := r.Notification[0].Update[0].Val
	switch v := v.Value.(type) {
	case *pb.TypedValue_JsonIetfVal:
		return string(v.JsonIetfVal), nil
	case *pb.TypedValue_StringVal:
		return v.StringVal, nil
	case *pb.TypedValue_UintVal:
		return string(uintValue(v.UintVal, pb.Encoding_JSON).GetJsonVal()), nil
	}
	return v.String(), nil
}

// TestPaths is case C40(d): SONiC's and OpenConfig's paths give the model's
// counters.
func TestPaths(t *testing.T) {
	s, c := start(t)
	s.Publish(sample(1, 17, 5000, 6000))
	for _, w := range []struct {
		target, path, want string
		enc                pb.Encoding
	}{
		{countersDB, "COUNTERS/Ethernet0/SAI_PORT_STAT_PFC_3_TX_PKTS", `"17"`, pb.Encoding_JSON_IETF},
		{countersDB, "COUNTERS/Ethernet0/SAI_PORT_STAT_PFC_3_TX_PKTS", "17", pb.Encoding_PROTO},
		{countersDB, "COUNTERS/Ethernet*/SAI_PORT_STAT_IF_OUT_UCAST_PKTS", `{"Ethernet0":{"SAI_PORT_STAT_IF_OUT_UCAST_PKTS":"10"},"Ethernet1":{"SAI_PORT_STAT_IF_OUT_UCAST_PKTS":"1"}}`, pb.Encoding_JSON_IETF},
		{countersDB, "COUNTERS/Ethernet0/SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US", `"7"`, pb.Encoding_JSON_IETF},
		{countersDB, "COUNTERS/Ethernet0/Queues/Ethernet0:3/SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS", `"4"`, pb.Encoding_JSON_IETF},
		{"", "qos/interfaces/interface[interface-id=Ethernet0]/output/queues/queue[name=3]/state/ecn-marked-pkts", `"4"`, pb.Encoding_JSON_IETF},
		{"", "interfaces/interface[name=Ethernet0]/state/counters/out-pkts", "10", pb.Encoding_PROTO},
		{"", "interfaces/interface[name=Ethernet0]/ethernet/state/counters/out-mac-control-frames", "17", pb.Encoding_PROTO},
		{countersDB, "PERSISTENT_WATERMARKS/Ethernet0/Queues/Ethernet0:3/SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES", `"6000"`, pb.Encoding_JSON_IETF},
	} {
		got, err := get(t, c, w.target, w.path, w.enc)
		if err != nil || got != w.want {
			t.Errorf("%s = %s (%v), want %s", w.path, got, err, w.want)
		}
	}
	all, err := get(t, c, countersDB, "COUNTERS/Ethernet*/Queues", pb.Encoding_JSON_IETF)
	var m map[string]map[string]string
	if err != nil || json.Unmarshal([]byte(all), &m) != nil || m["Ethernet0:3"]["SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES"] != "5000" || len(m) != 16 {
		t.Errorf("queues: %.200s (%v)", all, err)
	}
	for _, bad := range []string{"COUNTERS/Ethernet9", "NOTHING/x", "interfaces/interface[name=Ethernet9]"} {
		if _, err := get(t, c, "", bad, pb.Encoding_PROTO); status.Code(err) != codes.NotFound {
			t.Errorf("%s: %v, want NotFound", bad, err)
		}
	}
	if r, err := c.Capabilities(context.Background(), &pb.CapabilityRequest{}); err != nil || len(r.SupportedModels) != 3 {
		t.Errorf("capabilities %v %v", r, err)
	}
}

func TestWatermarkTables(t *testing.T) {
	s, c := start(t)
	read := func(table string) string {
		got, _ := get(t, c, countersDB, table+"/Ethernet0/Queues/Ethernet0:3/SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES", pb.Encoding_PROTO)
		return got
	}
	check := func(when, periodic, user, persistent string) {
		t.Helper()
		if p, u, e := read("PERIODIC_WATERMARKS"), read("USER_WATERMARKS"), read("PERSISTENT_WATERMARKS"); p != periodic || u != user || e != persistent {
			t.Errorf("%s: periodic %s user %s persistent %s, want %s %s %s", when, p, u, e, periodic, user, persistent)
		}
	}
	s.Publish(sample(1, 0, 100, 900))
	check("first interval", "900", "900", "900")
	s.Publish(sample(2, 0, 300, 900))
	check("a lower interval", "300", "900", "900")
	s.ClearUser()
	s.Publish(sample(3, 0, 200, 900))
	check("after clear", "200", "200", "900")
	s.Publish(sample(4, 0, 0, 1500))
	check("a new record", "1500", "1500", "1500")
}

func subscribe(t *testing.T, c pb.GNMIClient, mode pb.SubscriptionList_Mode, sub *pb.Subscription) pb.GNMI_SubscribeClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	st, err := c.Subscribe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = st.Send(&pb.SubscribeRequest{Request: &pb.SubscribeRequest_Subscribe{Subscribe: &pb.SubscriptionList{
		Mode: mode, Encoding: pb.Encoding_PROTO, Subscription: []*pb.Subscription{sub},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// next reads updates up to a sync response, or one notification.
func next(t *testing.T, st pb.GNMI_SubscribeClient) (n *pb.Notification, sync bool) {
	t.Helper()
	r, err := st.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return r.GetUpdate(), r.GetSyncResponse()
}

const outPkts = "interfaces/interface[name=*]/state/counters/out-pkts"

func TestOnceAndPoll(t *testing.T) {
	s, c := start(t)
	s.Publish(sample(5, 1, 0, 0))
	once := subscribe(t, c, pb.SubscriptionList_ONCE, &pb.Subscription{Path: path(outPkts)})
	n, _ := next(t, once)
	if len(n.Update) != 2 || n.Update[0].Val.GetUintVal() != 50 || n.Timestamp != epoch.Add(5*time.Millisecond).UnixNano() {
		t.Errorf("once: %v", n)
	}
	if _, sync := next(t, once); !sync {
		t.Error("once: no sync response")
	}
	if _, err := once.Recv(); err != io.EOF {
		t.Errorf("once does not end: %v", err)
	}
	poll := subscribe(t, c, pb.SubscriptionList_POLL, &pb.Subscription{Path: path(outPkts)})
	for us := int64(6); us < 9; us++ {
		s.Publish(sample(us, 1, 0, 0))
		if err := poll.Send(&pb.SubscribeRequest{Request: &pb.SubscribeRequest_Poll{Poll: &pb.Poll{}}}); err != nil {
			t.Fatal(err)
		}
		if n, _ := next(t, poll); n.Update[0].Val.GetUintVal() != uint64(10*us) {
			t.Errorf("poll at %d us: %v", us, n)
		}
		if _, sync := next(t, poll); !sync {
			t.Error("poll: no sync response")
		}
	}
}

func TestStreamOnChangeSendsChangesOnly(t *testing.T) {
	s, c := start(t)
	s.Publish(sample(1, 1, 0, 0))
	st := subscribe(t, c, pb.SubscriptionList_STREAM, &pb.Subscription{Path: path(outPkts), Mode: pb.SubscriptionMode_ON_CHANGE})
	if n, _ := next(t, st); len(n.Update) != 2 {
		t.Fatalf("first: %v", n)
	}
	if _, sync := next(t, st); !sync {
		t.Fatal("no sync response")
	}
	s.Publish(sample(2, 1, 0, 0))
	n, _ := next(t, st)
	if len(n.Update) != 1 || n.Update[0].Val.GetUintVal() != 20 {
		t.Errorf("change: %v, want only port 1", n)
	}
}

// Samples every 10 us of virtual time, whatever rate they are published at; a
// client that reads late is told what it missed.
func TestStreamSampleAndGaps(t *testing.T) {
	s, c := start(t)
	s.Publish(sample(10, 1, 0, 0))
	st := subscribe(t, c, pb.SubscriptionList_STREAM, &pb.Subscription{Path: path("interfaces/interface[name=Ethernet0]/state/counters/out-pkts"), SampleInterval: 10_000})
	next(t, st)
	next(t, st)
	var got []uint64
	for us := int64(11); us <= 30; us++ {
		s.Publish(sample(us, 1, 0, 0))
		if us%10 == 0 {
			n, _ := next(t, st)
			for n.Update[0].Path.Origin == "rocemu" {
				n, _ = next(t, st)
			}
			got = append(got, n.Update[0].Val.GetUintVal())
		}
	}
	if len(got) != 2 || got[0] < 200 || got[1] != 300 {
		t.Errorf("samples %v, want those of 20 us and 30 us", got)
	}
	m := s.attach()
	defer s.detach(m)
	for us := int64(31); us <= 40; us++ {
		s.Publish(sample(us, 1, 0, 0))
	}
	if v, gaps := m.take(); v.At != clock.Time(40*clock.Microsecond) || gaps != 10 {
		t.Errorf("a slow client has %v and %d gaps, want the latest and 10", v.At, gaps)
	}
}

// listener is a collector that speaks one of the dial-out methods.
type listener struct {
	mu     sync.Mutex
	names  []string
	got    []*pb.SubscribeResponse
	answer bool // reply to each message, as gnmic and telegraf do
}

func (l *listener) publish(_ any, ss grpc.ServerStream) error {
	md, _ := metadata.FromIncomingContext(ss.Context())
	l.mu.Lock()
	l.names = append(l.names, md.Get("subscription-name")[0]+"@"+md.Get("system-name")[0])
	l.mu.Unlock()
	for {
		r := new(pb.SubscribeResponse)
		if err := ss.RecvMsg(r); err != nil {
			return err
		}
		l.mu.Lock()
		l.got = append(l.got, r)
		l.mu.Unlock()
		if l.answer {
			if err := ss.SendMsg(&pb.SubscribeRequest{}); err != nil {
				return err
			}
		}
	}
}

func (l *listener) serve(t *testing.T, lis net.Listener, service string) *grpc.Server {
	t.Helper()
	g := grpc.NewServer()
	g.RegisterService(&grpc.ServiceDesc{ServiceName: service, HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{
		{StreamName: "Publish", Handler: l.publish, ServerStreams: true, ClientStreams: true},
	}}, l)
	go g.Serve(lis) //nolint:errcheck // ends with Stop
	return g
}

// A collector that answers every message and one that never does, either
// method; the first destination is dead, and a restart is survived.
func TestDialOut(t *testing.T) {
	for method, service := range map[string]string{MethodSONiC: "gnmi.sonic.gNMIDialOut", MethodNokia: "Nokia.SROS.DialoutTelemetry"} {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		col := &listener{answer: method == MethodNokia}
		g := col.serve(t, lis, service)
		s := NewStore("leaf1", otlp.TimeMap{Epoch: epoch})
		p, err := Publish(s, DialOut{
			Destinations: []string{"127.0.0.1:1", lis.Addr().String()}, Method: method, Name: "pfc", Target: countersDB,
			Paths: []*pb.Path{path("COUNTERS/Ethernet0/SAI_PORT_STAT_PFC_3_TX_PKTS")}, Retry: 20 * time.Millisecond, Encoding: pb.Encoding_JSON_IETF,
		})
		if err != nil {
			t.Fatal(err)
		}
		count := func() int { col.mu.Lock(); defer col.mu.Unlock(); return len(col.got) }
		until := func(n int) {
			deadline := time.Now().Add(8 * time.Second)
			for us := int64(1); count() < n; us++ {
				if time.Now().After(deadline) {
					_, err := p.Sent()
					t.Fatalf("%s: %d messages, want %d (last error %v)", method, count(), n, err)
				}
				s.Publish(sample(us, us, 0, 0))
				<-time.After(time.Millisecond)
			}
		}
		until(50)
		g.Stop()
		if lis, err = net.Listen("tcp", lis.Addr().String()); err != nil {
			t.Fatal(err)
		}
		g = col.serve(t, lis, service)
		until(count() + 20)
		p.Close()
		g.Stop()
		if col.names[0] != "pfc@leaf1" || len(col.names) < 2 {
			t.Errorf("%s: connections %v", method, col.names)
		}
		u := col.got[0].GetUpdate()
		if u.GetPrefix().GetTarget() != countersDB || !strings.HasPrefix(string(u.Update[0].Val.GetJsonIetfVal()), `"`) {
			t.Errorf("%s: first message %v", method, u)
		}
	}
}
