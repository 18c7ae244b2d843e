package natsbus

import (
	"testing"
	"time"
)

// A subscription that is made while the server is away takes effect once it is
// back.
func TestSubscribeWhileAway(t *testing.T) {
	srv, err := StartServer(ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	port := srv.Addr().String()
	c, err := Dialer{URL: srv.ClientURL(), Wait: 5 * time.Second}.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	srv.Shutdown()
	srv.WaitForShutdown()
	type made struct {
		s   Sub
		err error
	}
	done := make(chan made, 1)
	go func() {
		s, err := c.Subscribe("x", 4)
		done <- made{s, err}
	}()
	for c.NATS().NumSubscriptions() == 0 || c.NATS().IsConnected() { // it is asked while the server is away
		time.Sleep(time.Millisecond)
	}
	if srv, err = StartServer(ServerOptions{Port: portOf(t, port)}); err != nil {
		t.Fatal(err)
	}
	defer srv.Shutdown()
	m := <-done
	if m.err != nil {
		t.Fatal(m.err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		_ = c.Publish("x", []byte("hello"))
		select {
		case <-m.s.C():
			return
		default:
		}
		if time.Now().After(end) {
			t.Fatal("nothing arrives")
		}
	}
}

func portOf(t *testing.T, addr string) (port int) {
	t.Helper()
	for _, r := range addr {
		if port = port*10 + int(r-'0'); r == ':' {
			port = 0
		}
	}
	return port
}
