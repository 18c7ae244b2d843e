package coord

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/rocemu/rocemu/actors/natsbus"
)

// LocalOptions describe a cluster on this machine.
type LocalOptions struct {
	Processes int        // children; with Inside 0
	Inside    bool       // the run's one share is in this process; emud is not needed
	Devices   [][]string // per process; nil = as placed
	Emud      string     // program; "" = found beside this one or in PATH
	Model     Model
	Workers   int
	Log       hclog.Logger
	Stderr    io.Writer // of the processes; nil = discarded
	Silence   time.Duration
	// Lost is told of every process that ended and is started again.
	Lost func(name string, err error)
}

// Local is a cluster of child processes with a NATS server and a coordinator
// inside this one. Whatever ends this process, kill -9 included, ends the
// children and removes their directory.
type Local struct {
	URL string
	Dir string

	o       LocalOptions
	srv     *server.Server
	node    *Node
	stop    context.CancelFunc
	done    chan struct{}
	spawn   chan func() error
	janitor io.Closer
	cleaner *exec.Cmd
	mu      sync.Mutex
	procs   map[string]*os.Process
	closing bool
	wg      sync.WaitGroup
}

// FindEmud looks for the emud program: EMUD_PROGRAM, beside this one, in PATH.
func FindEmud() (string, error) {
	if p := os.Getenv("EMUD_PROGRAM"); p != "" {
		return p, nil
	}
	var tried []string
	if self, err := os.Executable(); err == nil {
		p := filepath.Join(filepath.Dir(self), "emud")
		if st, err := os.Stat(p); err == nil && !st.IsDir() {
			return p, nil
		}
		tried = append(tried, p)
	}
	if p, err := exec.LookPath("emud"); err == nil {
		return p, nil
	}
	return "", fmt.Errorf("the program emud is not beside this one (%v) and not in PATH; build it, or name it in EMUD_PROGRAM", tried)
}

// StartLocal starts the cluster and returns when its processes have been
// started; they join by themselves.
func StartLocal(ctx context.Context, o LocalOptions) (l *Local, err error) {
	if !o.Inside && (o.Processes < 1 || o.Processes > 512) {
		return nil, fmt.Errorf("%d processes: must be 1 to 512", o.Processes)
	}
	if o.Log == nil {
		o.Log = hclog.NewNullLogger()
	}
	if o.Emud == "" {
		if o.Emud, err = FindEmud(); err != nil && !o.Inside {
			return nil, err
		}
	}
	l = &Local{o: o, procs: map[string]*os.Process{}, spawn: make(chan func() error), done: make(chan struct{})}
	begun := l // a return of an error leaves nothing in l
	defer func() {
		if err != nil {
			begun.Close()
		}
	}()
	if l.Dir, err = os.MkdirTemp("", "rocemu-"); err != nil {
		return nil, err
	}
	if err = os.WriteFile(filepath.Join(l.Dir, ".rocemu-run"), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return nil, err
	}
	go l.spawner()
	if err = ctx.Err(); err != nil {
		return nil, err
	}
	if o.Emud == "" {
		sweepDirs()
	} else if err = l.do(l.startJanitor); err != nil {
		return nil, err
	}
	if l.srv, err = natsbus.StartServer(natsbus.ServerOptions{Name: "local"}); err != nil {
		return nil, err
	}
	l.URL = l.srv.ClientURL()
	for i := range o.Processes { // they come up while this process founds the cluster
		if err = l.do(func() error { return l.startProc(i, 0) }); err != nil {
			return nil, err
		}
	}
	if err = l.coordinate(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// spawner starts every child from one thread that lives as long as l: the
// kernel's parent-death signal goes by the thread that started a process.
func (l *Local) spawner() {
	runtime.LockOSThread()
	for f := range l.spawn {
		_ = f()
	}
	<-l.done
}

func (l *Local) do(f func() error) error {
	r := make(chan error, 1)
	l.spawn <- func() error { r <- f(); return nil }
	return <-r
}

// coordinate runs the only voter in this process: it cannot outlive or be
// outlived by what it coordinates.
func (l *Local) coordinate(ctx context.Context) error {
	build := "" // of this program
	if !l.o.Inside {
		var err error
		if build, err = buildOf(l.o.Emud); err != nil {
			return err
		}
	}
	n, err := NewNode(ctx, Config{
		Name: "local", Data: filepath.Join(l.Dir, "local"), Coordinator: true, NoSlots: !l.o.Inside, Expect: 1, Model: l.o.Model, Log: l.o.Log.Named("local"),
		Build: build, Silence: l.o.Silence, Workers: l.o.Workers, Dialer: natsbus.Dialer{URL: l.URL, Wait: 5 * time.Second},
		Shared: l.shared(), Fleeting: true,
		Timing: Timing{10 * time.Millisecond, 10 * time.Millisecond, 5 * time.Millisecond}, // it has nobody to wait for
	})
	if err != nil {
		return err
	}
	l.node = n
	ctx, l.stop = context.WithCancel(context.Background())
	go func() {
		defer close(l.done)
		_ = n.Run(ctx)
	}()
	for end := time.Now().Add(5 * time.Second); !n.cons.leads() && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // what is asked for before is asked for again much later
	}
	return nil
}

// shared is where the processes keep states and results: they have one disk.
func (l *Local) shared() string { return filepath.Join(l.Dir, "blobs") }

// Over returns a channel that closes when a run has ended.
func (l *Local) Over(run string) <-chan struct{} {
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			ch, ended := l.node.rep.Changed(), false
			l.node.rep.View(func(s *State) {
				ended = s.Run != nil && s.Run.Spec.ID == run && (s.Run.Phase == Ended || s.Run.Phase == Failed)
			})
			if ended {
				return
			}
			select {
			case <-ch:
			case <-l.done:
				return
			}
		}
	}()
	return over
}

// sweepDirs removes the directories of runs that were killed, where no janitor
// could do it for them.
func sweepDirs() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), "rocemu-*"))
	for _, d := range dirs {
		b, err := os.ReadFile(filepath.Join(d, ".rocemu-run"))
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(string(b))
		if err == nil && pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(d)
		}
	}
}

func (l *Local) startJanitor() error {
	c := exec.Command(l.o.Emud, "janitor", l.Dir)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("%s: %w", l.o.Emud, err)
	}
	l.janitor, l.cleaner = in, c
	return nil
}

// startProc starts process i; a process that ends is started again, a little
// later each time.
func (l *Local) startProc(i, again int) error {
	name := fmt.Sprintf("p%d", i+1)
	args := []string{"--name", name, "--nats", l.URL, "--data", filepath.Join(l.Dir, name), "--shared", l.shared(), "--workers", strconv.Itoa(max(1, l.o.Workers)), "--cores", "1"}
	if l.o.Devices != nil {
		for _, d := range l.o.Devices[i] {
			args = append(args, "--devices", d)
		}
	}
	c := exec.Command(l.o.Emud, args...)
	c.Stderr, c.Env = l.o.Stderr, l.environ()
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		return nil
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("%s: %w", l.o.Emud, err)
	}
	l.procs[name] = c.Process
	l.wg.Add(1)
	go func() {
		defer l.wg.Done()
		err := c.Wait()
		l.ended(i, again, name, err)
	}()
	return nil
}

// environ gives each process no more threads than it has engine workers where
// processes fill the machine: handing a batch from one thread to another costs
// a fifth of a window's processor time.
func (l *Local) environ() []string {
	env := os.Environ()
	if os.Getenv("GOMAXPROCS") == "" && l.o.Processes*max(1, l.o.Workers) >= runtime.NumCPU() {
		env = append(env, "GOMAXPROCS="+strconv.Itoa(max(1, l.o.Workers)))
	}
	return env
}

// maxAgain is how often one process is started again.
const maxAgain = 50

func (l *Local) ended(i, again int, name string, err error) {
	l.mu.Lock()
	delete(l.procs, name)
	closing := l.closing
	l.mu.Unlock()
	if closing {
		return
	}
	if l.o.Lost != nil {
		l.o.Lost(name, err)
	}
	if again >= maxAgain {
		return
	}
	time.Sleep(min(time.Duration(1+again)*50*time.Millisecond, time.Second))
	l.mu.Lock()
	closing = l.closing
	l.mu.Unlock()
	if !closing {
		if err := l.do(func() error { return l.startProc(i, again+1) }); err != nil {
			l.o.Log.Error("a process cannot be started again", "name", name, "err", err)
		}
	}
}

// Pids are the running processes, by name.
func (l *Local) Pids() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := map[string]int{}
	for n, p := range l.procs {
		m[n] = p.Pid
	}
	return m
}

// Close ends the cluster and removes its directory.
func (l *Local) Close() {
	l.mu.Lock()
	l.closing = true
	for _, p := range l.procs {
		_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
	}
	l.mu.Unlock()
	l.wg.Wait()
	if l.node != nil {
		l.node.leaving.Store(true)
		l.stop()
		<-l.done
		l.node.Close()
	} else {
		close(l.done)
	}
	if l.srv != nil {
		l.srv.Shutdown()
		l.srv.WaitForShutdown()
	}
	close(l.spawn)
	if l.Dir != "" {
		_ = os.RemoveAll(l.Dir)
	}
	if l.janitor != nil {
		l.janitor.Close()
		_ = l.cleaner.Wait()
	}
}
