package chaos

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ether is a learning switch in this process between TAP devices, for kernels
// that cannot delay: each frame takes its time at the cables' rate, once up and
// once down, and is handed on a delay after its last bit. One thread does it
// all, before any other on the machine, so that what the table calls the network
// does not wait for what it measures.
type ether struct {
	delay atomic.Int64 // nanoseconds
	ports []*plug
	free  [][]byte
	home  map[[6]byte]int // port of an address
	stop  atomic.Bool
	wg    sync.WaitGroup
}

// plug is a port: the TAP device's other end.
type plug struct {
	fd       int
	cut      atomic.Bool
	up, down time.Time // until when the cable carries what was sent
	queue    []onWay
}

// onWay is a frame that arrives at an instant.
type onWay struct {
	at    time.Time
	frame []byte
}

const (
	mtu      = 9000
	gigabits = 10
	backlog  = 10 * time.Millisecond // what would wait longer for a cable is lost
)

// tap makes a TAP device of the name and plugs it in.
func (e *ether) tap(name string) error {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("/dev/net/tun: %w", err)
	}
	r, err := unix.NewIfreq(name)
	if err == nil {
		r.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, r)
	}
	if err != nil {
		unix.Close(fd)
		return fmt.Errorf("TAP device %s: %w", name, err)
	}
	e.ports = append(e.ports, &plug{fd: fd})
	return nil
}

// start begins to carry; the end of the test ends it and the devices.
func (e *ether) start(t testing.TB) {
	e.home = map[[6]byte]int{}
	e.wg.Go(func() {
		runtime.LockOSThread() // for good: the thread ends with its priority
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
		if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}, 0); err != nil {
			t.Logf("the switch has no priority: %v", err)
		}
		for !e.stop.Load() {
			e.turn()
		}
	})
	t.Cleanup(func() {
		e.stop.Store(true)
		e.wg.Wait()
		for _, p := range e.ports {
			unix.Close(p.fd)
		}
	})
}

// turn waits for frames or for the next arrival, takes the ones and delivers
// the others.
func (e *ether) turn() {
	var fds [8]unix.PollFd
	wait := 50 * time.Millisecond
	for i, p := range e.ports {
		fds[i] = unix.PollFd{Fd: int32(p.fd), Events: unix.POLLIN}
		if len(p.queue) > 0 {
			wait = min(wait, time.Until(p.queue[0].at))
		}
	}
	ts := unix.NsecToTimespec(max(0, wait.Nanoseconds()))
	if _, err := unix.Ppoll(fds[:len(e.ports)], &ts, nil); err != nil {
		return
	}
	for i, p := range e.ports {
		if fds[i].Revents != 0 {
			e.take(i, p)
		}
	}
	for _, p := range e.ports {
		e.deliver(p)
	}
}

// take reads what a port sends.
func (e *ether) take(from int, p *plug) {
	for range 64 {
		b := e.buffer()
		n, err := unix.Read(p.fd, b)
		if err != nil || n < 14 {
			e.free = append(e.free, b)
			return
		}
		now := time.Now()
		took := time.Duration(n * 8 / gigabits)
		if p.up = later(p.up, now).Add(took); p.cut.Load() || p.up.Sub(now) > backlog {
			e.free = append(e.free, b)
			continue
		}
		e.home[[6]byte(b[6:12])] = from
		if to, ok := e.home[[6]byte(b[:6])]; ok {
			e.send(e.ports[to], p.up, took, b[:n])
			continue
		}
		for i, q := range e.ports {
			if i != from {
				e.send(q, p.up, took, append(e.buffer()[:0], b[:n]...))
			}
		}
		e.free = append(e.free, b)
	}
}

// send puts a frame that stands at the switch at an instant on the cable down.
func (e *ether) send(p *plug, at time.Time, took time.Duration, frame []byte) {
	down := later(p.down, at).Add(took)
	if p.cut.Load() || down.Sub(at) > backlog {
		return
	}
	p.down = down
	p.queue = append(p.queue, onWay{down.Add(time.Duration(e.delay.Load())), frame})
}

// deliver hands on what has arrived.
func (e *ether) deliver(p *plug) {
	n := 0
	for ; n < len(p.queue) && !time.Now().Before(p.queue[n].at); n++ {
		_, _ = unix.Write(p.fd, p.queue[n].frame) // a full device loses it, as a cable may
		e.free = append(e.free, p.queue[n].frame[:cap(p.queue[n].frame)])
	}
	p.queue = append(p.queue[:0], p.queue[n:]...)
}

func (e *ether) buffer() []byte {
	if n := len(e.free); n > 0 {
		b := e.free[n-1]
		e.free = e.free[:n-1]
		return b[:cap(b)]
	}
	return make([]byte, mtu+64)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
