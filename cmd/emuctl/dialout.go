package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"

	"github.com/rocemu/rocemu/telemetry/gnmi"
)

// checkSinks refuses addresses that are malformed; "" = nobody.
func checkSinks(gnmiAt, dialout string) (err error) {
	if gnmiAt != "" {
		_, _, err = gnmiAddress(gnmiAt)
	}
	if err == nil && dialout != "" {
		_, _, err = dialOutTo(dialout)
	}
	return err
}

// dialOutTo are the listeners of a dial-out: [sonic:]HOST:PORT, several
// separated by commas.
func dialOutTo(to string) (dest []string, sonic bool, err error) {
	list, sonic := strings.CutPrefix(to, "sonic:")
	dest = strings.Split(list, ",")
	for _, d := range dest {
		if _, _, err := address(d); err != nil {
			return nil, false, fmt.Errorf("--dialout %q: want [sonic:]HOST:PORT: %w", to, err)
		}
	}
	return dest, sonic, nil
}

// foundLimit is how long the names of listeners are looked up before a run.
const foundLimit = 2 * time.Second

// warnUnknown warns of the listeners of a dial-out whose name nobody knows: they
// may get one while the run lasts, so it is no error.
func (a *app) warnUnknown(ctx context.Context, to string) {
	dest, _, err := dialOutTo(to)
	if to == "" || err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, foundLimit)
	defer cancel()
	for _, d := range dest {
		host, _, _ := address(d)
		if host == "" {
			continue
		}
		var none *net.DNSError
		if _, err := net.DefaultResolver.LookupHost(ctx, host); errors.As(err, &none) && none.IsNotFound {
			fmt.Fprintf(a.err, "warning: --dialout %s: no host is named %q: nothing is published there as long as that is so\n", to, host)
		}
	}
}

// dialOut has a switch publish the counters of its ports, queues and priority
// groups to a listener.
func dialOut(s *gnmi.Store, to string) (*gnmi.Publisher, error) {
	cfg := gnmi.DialOut{Name: "rocemu", Target: "COUNTERS_DB", Encoding: pb.Encoding_JSON_IETF, Retry: time.Second}
	dest, sonic, err := dialOutTo(to)
	if err != nil {
		return nil, err
	}
	if sonic {
		cfg.Method = gnmi.MethodSONiC
	}
	cfg.Destinations = dest
	for _, more := range []string{"", "Queues", "PriorityGroups"} {
		path := &pb.Path{Elem: []*pb.PathElem{{Name: "COUNTERS"}, {Name: "Ethernet*"}}}
		if more != "" {
			path.Elem = append(path.Elem, &pb.PathElem{Name: more})
		}
		cfg.Paths = append(cfg.Paths, path)
	}
	return gnmi.Publish(s, cfg)
}

// accountDials adds up what became of the samples of the dial-outs, which have
// ended.
func (w *watcher) accountDials() {
	for _, p := range w.dials {
		a := p.Account()
		w.dialed.Made += a.Made
		w.dialed.Exported += a.Exported
		w.dialed.Dropped += a.Made - a.Exported
		if a.LastError != "" {
			w.dialed.LastError = a.LastError
		}
	}
}
