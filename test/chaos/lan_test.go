package chaos

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lan is three network namespaces that stand for machines, and an address for
// this process, every cable at 10 Gb/s. Without a delay, and where the kernel
// can delay (netem), a bridge in a fourth namespace joins them; elsewhere an
// ether does.
type lan struct {
	t     testing.TB
	tag   string
	delay time.Duration // one way, between any two
	air   *ether        // nil: the kernel's bridge
	how   string
	addr  []string
}

const hereAddr = "10.231.77.254"

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (l *lan) must(args ...string) {
	l.t.Helper()
	if err := ip(args...); err != nil {
		l.t.Fatal(err)
	}
}

// newLAN skips the test where namespaces are not permitted.
func newLAN(t testing.TB, delay time.Duration) *lan {
	t.Helper()
	l := &lan{t: t, tag: fmt.Sprintf("rce%d", os.Getpid()%10000), delay: delay}
	if err := ip("netns", "add", l.hub()); err != nil {
		t.Skipf("no network namespaces here: %v", err)
	}
	t.Cleanup(func() { _ = ip("netns", "del", l.hub()) })
	l.must("-n", l.hub(), "link", "set", "lo", "up")
	for i := range 3 {
		l.must("netns", "add", l.ns(i))
		t.Cleanup(func() { _ = ip("netns", "del", l.ns(i)) })
		l.must("-n", l.ns(i), "link", "set", "lo", "up")
		l.addr = append(l.addr, fmt.Sprintf("10.231.77.%d", i+1))
	}
	if delay == 0 || l.tc(l.hub(), "lo", "netem", "delay", "1us") == nil {
		l.bridge()
	} else {
		l.user()
	}
	for i := range 3 {
		l.must("-n", l.ns(i), "addr", "add", l.addr[i]+"/24", "dev", "eth")
		l.must("-n", l.ns(i), "link", "set", "eth", "mtu", fmt.Sprint(mtu), "up")
	}
	l.must("addr", "add", hereAddr+"/24", "dev", l.tag)
	l.must("link", "set", l.tag, "mtu", fmt.Sprint(mtu), "up")
	if l.air != nil {
		l.trim()
	}
	return l
}

// trim makes the ether's delay what is left of the lan's when the way through
// it, which costs time as well, is taken off.
func (l *lan) trim() {
	a, b := l.pair()
	defer a.Close()
	defer b.Close()
	go l.echo(a)
	quickest, _ := l.trips(b)
	l.air.delay.Store(int64(max(0, l.delay-quickest/2)))
}

func (l *lan) hub() string       { return l.tag + "h" }
func (l *lan) ns(i int) string   { return fmt.Sprint(l.tag, "m", i+1) }
func (l *lan) port(i int) string { return fmt.Sprint("p", i+1) }

// bridge joins all through the kernel.
func (l *lan) bridge() {
	l.how = "a bridge"
	l.must("-n", l.hub(), "link", "add", "name", "bridge0", "type", "bridge")
	for i := range 3 {
		l.must("-n", l.ns(i), "link", "add", "eth", "type", "veth", "peer", "name", l.port(i), "netns", l.hub())
		l.must("-n", l.hub(), "link", "set", l.port(i), "mtu", fmt.Sprint(mtu), "master", "bridge0", "up")
		l.shape(l.ns(i), "eth")
		l.shape(l.hub(), l.port(i))
	}
	l.must("link", "add", l.tag, "type", "veth", "peer", "name", "here", "netns", l.hub())
	l.t.Cleanup(func() { _ = ip("link", "del", l.tag) })
	l.must("-n", l.hub(), "link", "set", "here", "mtu", fmt.Sprint(mtu), "master", "bridge0", "up")
	l.must("-n", l.hub(), "link", "set", "bridge0", "up")
}

// shape limits what an interface sends; half of the delay passes on each of the
// two cables between machines.
func (l *lan) shape(ns, dev string) {
	var err error
	if l.delay > 0 {
		err = l.tc(ns, dev, "netem", "delay", fmt.Sprintf("%dns", (l.delay/2).Nanoseconds()), "rate", fmt.Sprintf("%dgbit", gigabits))
	} else {
		err = l.tc(ns, dev, "tbf", "rate", fmt.Sprintf("%dgbit", gigabits), "burst", fmt.Sprint(burst), "latency", backlog.String())
	}
	if err != nil {
		l.t.Logf("%s %s is not shaped: %v", ns, dev, err)
	}
}

func (l *lan) tc(ns, dev string, qdisc ...string) error {
	return exec.Command("ip", append([]string{"netns", "exec", ns, "tc", "qdisc", "replace", "dev", dev, "root"}, qdisc...)...).Run()
}

// user joins all through an ether, whose last port is this process's.
func (l *lan) user() {
	l.how, l.air = "a switch in user space", &ether{}
	for i := range 3 {
		if err := l.air.tap(l.tag + l.port(i)); err != nil {
			l.t.Skipf("no delay here: this kernel has no netem, and %v", err)
		}
		l.must("link", "set", l.tag+l.port(i), "netns", l.ns(i), "name", "eth")
	}
	if err := l.air.tap(l.tag); err != nil {
		l.t.Fatal(err)
	}
	l.air.start(l.t)
}

// cut parts machine i from all others, or joins it again.
func (l *lan) cut(i int, off bool) {
	l.t.Helper()
	if l.air != nil {
		l.air.ports[i].cut.Store(off)
		return
	}
	l.must("-n", l.hub(), "link", "set", l.port(i), map[bool]string{true: "down", false: "up"}[off])
}

// within runs f as if on machine i: sockets that it opens are there.
func (l *lan) within(i int, f func() error) error {
	end := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends in the namespace
		fd, err := unix.Open("/var/run/netns/"+l.ns(i), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(fd, unix.CLONE_NEWNET)
			unix.Close(fd)
		}
		if err == nil {
			err = f()
		}
		end <- err
	}()
	return <-end
}

// pair is a connection between two machines.
func (l *lan) pair() (a, b net.Conn) {
	l.t.Helper()
	err := l.within(0, func() error {
		ln, err := net.Listen("tcp", l.addr[0]+":0")
		if err != nil {
			return err
		}
		defer ln.Close()
		if err = l.within(1, func() (err error) { b, err = net.Dial("tcp", ln.Addr().String()); return }); err == nil {
			a, err = ln.Accept()
		}
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return a, b
}

const trips, ping, bulk = 1000, 64, 1 << 28

// burst is what a shaper lets through at once after a silence, bytes: bulk bytes
// take the time of bulk - burst at its rate.
const (
	burst   = 4 << 20
	maxGbps = gigabits * float64(bulk) / (bulk - burst)
)

// echo sends back what trips sends.
func (l *lan) echo(c net.Conn) { _, _ = io.CopyN(c, c, trips*ping) }

// trips times a thousand round trips of 64 bytes: the quickest and the median,
// which waits for processors too.
func (l *lan) trips(c net.Conn) (quickest, median time.Duration) {
	l.t.Helper()
	var took []time.Duration
	buf := make([]byte, ping)
	for range trips {
		t0 := time.Now()
		_, err := c.Write(buf)
		if err == nil {
			_, err = io.ReadFull(c, buf)
		}
		if err != nil {
			l.t.Fatal(err)
		}
		took = append(took, time.Since(t0))
	}
	slices.Sort(took)
	return took[0], took[trips/2]
}

// measure tells what the network between two machines really does: round trips,
// and the rate of one connection.
func (l *lan) measure() (quickest, median time.Duration, gbps float64) {
	l.t.Helper()
	a, b := l.pair()
	defer a.Close()
	defer b.Close()
	go func() {
		l.echo(a)
		_, _ = io.CopyN(io.Discard, a, bulk)
		_, _ = a.Write([]byte{1})
	}()
	quickest, median = l.trips(b)
	buf := make([]byte, 1<<20)
	t0, err := time.Now(), error(nil)
	for sent := 0; sent < bulk && err == nil; sent += len(buf) {
		_, err = b.Write(buf)
	}
	if err == nil {
		_, err = io.ReadFull(b, buf[:1])
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return quickest, median, bulk * 8 / time.Since(t0).Seconds() / 1e9
}
