package gnmi

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/rocemu/rocemu/clock"
)

// Server is the gNMI service of one switch.
type Server struct {
	pb.UnimplementedGNMIServer
	store *Store
}

// encodings that answers can have.
var encodings = []pb.Encoding{pb.Encoding_JSON_IETF, pb.Encoding_JSON, pb.Encoding_PROTO}

// writeBuffer holds what a stream may send before its client has to say that it
// took some: one write to the network instead of two or three.
const writeBuffer = 128 << 10

// lastWords bounds how long the end of a run waits for who reads its counters
// to take the last sample.
const lastWords = 2 * time.Second

// Stop ends a server of s: streams get the last sample first.
func Stop(g *grpc.Server, s *Store) {
	s.End()
	t := time.AfterFunc(lastWords, g.Stop)
	defer t.Stop()
	g.GracefulStop()
}

// Serve answers on a listener until the returned server is stopped.
func Serve(l net.Listener, s *Store) *grpc.Server {
	g := grpc.NewServer(grpc.ForceServerCodecV2(newCodec()), grpc.WriteBufferSize(writeBuffer))
	pb.RegisterGNMIServer(g, &Server{store: s})
	reflection.Register(g)
	go g.Serve(l) //nolint:errcheck // ends with Stop
	return g
}

// Capabilities tells models and encodings.
func (*Server) Capabilities(context.Context, *pb.CapabilityRequest) (*pb.CapabilityResponse, error) {
	return &pb.CapabilityResponse{
		SupportedModels: []*pb.ModelData{
			{Name: "sonic-db", Organization: "SONiC", Version: "0.1.0"},
			{Name: "openconfig-interfaces", Organization: "OpenConfig working group"},
			{Name: "openconfig-qos", Organization: "OpenConfig working group"},
		},
		SupportedEncodings: encodings, GNMIVersion: "0.10.0",
	}, nil
}

// Get answers with the latest sample.
func (s *Server) Get(_ context.Context, r *pb.GetRequest) (*pb.GetResponse, error) {
	v := s.store.View()
	if v == nil {
		return nil, status.Error(codes.Unavailable, "no sample yet")
	}
	out := &pb.GetResponse{}
	for _, p := range r.Path {
		q, err := newQuery(r.Prefix, p)
		if err != nil {
			return nil, err
		}
		n, err := v.notification(q, r.Encoding, r.Prefix)
		if err != nil {
			return nil, err
		}
		out.Notification = append(out.Notification, n)
	}
	return out, nil
}

// subscription is one path of a stream.
type subscription struct {
	*query
	onChange bool
	every    clock.Duration // SAMPLE, virtual; 0 = each sample
	next     clock.Time

	// ON_CHANGE: what was sent, of a path of COUNTERS_DB, or of leaves by name.
	object *pb.TypedValue
	sent   map[string]uint64
}

// stream is one Subscribe call.
type stream struct {
	srv  pb.GNMI_SubscribeServer
	list *pb.SubscriptionList
	subs []*subscription
	gaps uint64 // as told last
}

// Subscribe serves ONCE, POLL and STREAM.
func (s *Server) Subscribe(srv pb.GNMI_SubscribeServer) error {
	first, err := srv.Recv()
	if err != nil {
		return err
	}
	if first.GetSubscribe() == nil {
		return status.Error(codes.InvalidArgument, "the first message must be a SubscriptionList")
	}
	st := &stream{srv: srv, list: first.GetSubscribe()}
	if err := st.resolve(); err != nil {
		return err
	}
	switch st.list.Mode {
	case pb.SubscriptionList_ONCE:
		return st.now(s.store.View())
	case pb.SubscriptionList_POLL:
		return st.poll(s.store)
	}
	return st.follow(s.store)
}

// resolve checks paths, modes and encoding.
func (st *stream) resolve() error {
	ok := false
	for _, e := range encodings {
		ok = ok || e == st.list.Encoding
	}
	if !ok {
		return status.Errorf(codes.Unimplemented, "encoding %v: want JSON_IETF, JSON or PROTO", st.list.Encoding)
	}
	for _, sub := range st.list.Subscription {
		q, err := newQuery(st.list.Prefix, sub.Path)
		if err != nil {
			return err
		}
		// Exported time is scale × virtual; intervals are virtual.
		st.subs = append(st.subs, &subscription{
			query: q, onChange: sub.Mode == pb.SubscriptionMode_ON_CHANGE,
			every: clock.Duration(sub.SampleInterval) * clock.Nanosecond, sent: map[string]uint64{},
		})
	}
	if len(st.subs) == 0 {
		return status.Error(codes.InvalidArgument, "no path is subscribed to")
	}
	return nil
}

// now sends all paths and the sync response.
func (st *stream) now(v *View) error {
	if v == nil {
		return status.Error(codes.Unavailable, "no sample yet")
	}
	for _, sub := range st.subs {
		n, err := v.notification(sub.query, st.list.Encoding, st.list.Prefix)
		if err != nil {
			return err
		}
		if err := st.send(n); err != nil {
			return err
		}
	}
	return st.sync()
}

func (st *stream) send(n *pb.Notification) error {
	return st.srv.Send(&pb.SubscribeResponse{Response: &pb.SubscribeResponse_Update{Update: n}})
}

func (st *stream) sync() error {
	return st.srv.Send(&pb.SubscribeResponse{Response: &pb.SubscribeResponse_SyncResponse{SyncResponse: true}})
}

// poll answers each poll with the latest sample.
func (st *stream) poll(s *Store) error {
	asked, failed := make(chan *pb.SubscribeRequest), make(chan error, 1)
	go st.listen(asked, failed)
	for {
		var r *pb.SubscribeRequest
		select {
		case r = <-asked:
		case err := <-failed:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case <-s.ended:
			return nil
		}
		if r.GetPoll() == nil {
			return status.Error(codes.InvalidArgument, "a POLL subscription takes only polls")
		}
		if err := st.now(s.View()); err != nil {
			return err
		}
	}
}

// listen hands on what the client asks.
func (st *stream) listen(asked chan<- *pb.SubscribeRequest, failed chan<- error) {
	for {
		r, err := st.srv.Recv()
		if err != nil {
			failed <- err
			return
		}
		select {
		case asked <- r:
		case <-st.srv.Context().Done(): // ended with the call
			return
		}
	}
}

// follow sends samples as they come, until the client goes or none follows.
func (st *stream) follow(s *Store) error {
	m := s.attach()
	defer s.detach(m)
	synced := false
	for {
		v, gaps, err := m.next(st.srv.Context(), s)
		if v == nil || err != nil {
			return nil // no sample follows, or nobody reads
		}
		if err := st.sample(v, gaps); err != nil {
			return err
		}
		if !synced {
			synced = true
			if err := st.sync(); err != nil {
				return err
			}
		}
	}
}

// sample sends what is due of a view, and how many samples were skipped before
// it because the client was slow.
func (st *stream) sample(v *View, gaps uint64) error {
	if gaps > st.gaps {
		up := &pb.Update{Path: &pb.Path{Origin: "rocemu", Elem: []*pb.PathElem{elem("telemetry"), elem("skipped-samples")}}, Val: uintValue(gaps, st.list.Encoding)}
		st.gaps = gaps
		if err := st.send(&pb.Notification{Timestamp: v.Stamp, Prefix: answerPrefix(st.list.Prefix), Update: []*pb.Update{up}}); err != nil {
			return err
		}
	}
	for _, sub := range st.subs {
		n, err := sub.due(v, st.list)
		if err == nil && n != nil {
			err = st.send(n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// due returns what a subscription has to tell of a view, nil for nothing: all at
// each interval, or what changed.
func (s *subscription) due(v *View, list *pb.SubscriptionList) (*pb.Notification, error) {
	if s.onChange {
		up, err := s.changes(v, list.Encoding)
		if len(up) == 0 || err != nil {
			return nil, err
		}
		return &pb.Notification{Timestamp: v.Stamp, Prefix: answerPrefix(list.Prefix), Update: up}, nil
	}
	if v.At < s.next {
		return nil, nil
	}
	for s.every > 0 && s.next <= v.At {
		s.next = s.next.Add((v.At.Sub(s.next)/s.every + 1) * s.every)
	}
	return v.notification(s.query, list.Encoding, list.Prefix)
}

// changes returns the updates of what is not as it was sent last.
func (s *subscription) changes(v *View, enc pb.Encoding) (out []*pb.Update, err error) {
	if s.sonic != nil {
		u, err := v.object(s.query, enc)
		if err != nil || proto.Equal(s.object, u.Val) {
			return nil, err
		}
		s.object = u.Val
		return []*pb.Update{u}, nil
	}
	leaves, err := s.openconfig(v.lay)
	for _, l := range leaves {
		n := l.value(v.points)
		if old, ok := s.sent[l.name]; !ok || n != old {
			s.sent[l.name] = n
			out = append(out, &pb.Update{Path: l.path, Val: uintValue(n, enc)})
		}
	}
	return out, err
}
