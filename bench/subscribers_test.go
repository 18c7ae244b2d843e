package bench

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/rocemu/rocemu/report"
)

// switches of W1, each of which has a gNMI server.
const switches = 12

// BenchmarkSubscribers runs W1 as a process of its own, whose counters are
// sampled each 100 us, in turns bare and with a subscriber of all ports and
// queues at each switch, and reports the medians of its CPU seconds. Take
// -benchtime 7x or more.
func BenchmarkSubscribers(b *testing.B) {
	bin := filepath.Join(b.TempDir(), "emuctl")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", bin, "../cmd/emuctl").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	if other := os.Getenv("EMUCTL"); other != "" {
		bin = other // of another state of the sources
	}
	b.Run("sonic", func(b *testing.B) {
		measureServed(b, bin, &pb.SubscriptionList{
			Prefix: &pb.Path{Target: "COUNTERS_DB"}, Encoding: pb.Encoding_JSON_IETF,
			Subscription: []*pb.Subscription{sampled("COUNTERS", "Ethernet*"), sampled("COUNTERS", "Ethernet*", "Queues")},
		})
	})
	b.Run("openconfig", func(b *testing.B) {
		measureServed(b, bin, &pb.SubscriptionList{Encoding: pb.Encoding_PROTO, Subscription: []*pb.Subscription{sampled("interfaces"), sampled("qos")}})
	})
}

func measureServed(b *testing.B, bin string, sub *pb.SubscriptionList) {
	var bare, served, ratio, got []float64
	for b.Loop() {
		x, _ := runServed(b, bin, nil)
		y, n := runServed(b, bin, sub)
		bare, served, ratio, got = append(bare, x), append(served, y), append(ratio, y/x), append(got, float64(n))
	}
	b.ReportMetric(median(bare), "bare-cpu-s")
	b.ReportMetric(median(served), "served-cpu-s")
	b.ReportMetric(median(ratio), "served/bare")
	b.ReportMetric(median(got), "messages")
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// sampled subscribes to each sample of a path.
func sampled(path ...string) *pb.Subscription {
	s := &pb.Subscription{Path: &pb.Path{}, Mode: pb.SubscriptionMode_SAMPLE}
	for _, e := range path {
		s.Path.Elem = append(s.Path.Elem, &pb.PathElem{Name: e})
	}
	return s
}

// runServed runs W1 and returns its CPU seconds and the messages that
// subscribers got.
func runServed(b *testing.B, bin string, sub *pb.SubscriptionList) (cpu float64, messages int64) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	base := freePorts(b)
	cmd := exec.CommandContext(ctx, bin, "run", "w1.yaml", "--set", "telemetry.interval=100us", "--gnmi", address(base), "--workers", "1", "--json")
	var n atomic.Int64
	var all sync.WaitGroup
	if sub != nil {
		for i := range switches {
			all.Go(func() { listen(ctx, address(base+i), sub, &n) })
		}
	}
	out, err := cmd.Output()
	cancel()
	all.Wait()
	r := new(report.Result)
	if err == nil {
		err = json.Unmarshal(out, r)
	}
	if err != nil {
		b.Fatal(err)
	}
	return r.Engine.CPUS, n.Load()
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// freePorts finds a row of free ports below those that connections get.
func freePorts(b *testing.B) int {
	b.Helper()
	for base := 12000; base < 32000; base += switches {
		if free(base) {
			return base
		}
	}
	b.Fatal("no row of free ports")
	return 0
}

func free(base int) bool {
	for i := range switches {
		l, err := net.Listen("tcp", address(base+i))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

// unread takes messages without looking at them, so that those who listen take
// little of the machine.
type unread struct{}

func (unread) Name() string { return "proto" }

func (unread) Marshal(v any) ([]byte, error) { return proto.Marshal(v.(proto.Message)) }

func (unread) Unmarshal([]byte, any) error { return nil }

// listen counts the messages of a subscription until its switch is gone.
func listen(ctx context.Context, addr string, sub *pb.SubscriptionList, n *atomic.Int64) {
	soon := backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1, MaxDelay: 10 * time.Millisecond}
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(grpc.ConnectParams{Backoff: soon}))
	if err != nil {
		return
	}
	defer conn.Close()
	st, err := pb.NewGNMIClient(conn).Subscribe(ctx, grpc.WaitForReady(true), grpc.ForceCodec(unread{}))
	if err == nil {
		err = st.Send(&pb.SubscribeRequest{Request: &pb.SubscribeRequest_Subscribe{Subscribe: sub}})
	}
	for err == nil {
		if _, err = st.Recv(); err == nil {
			n.Add(1)
		}
	}
}
