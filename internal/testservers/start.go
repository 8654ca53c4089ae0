package testservers

import (
	"context"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/pawl-go/pawl/internal/basictest"
)

// startTimeout is the time within which a server must listen. Only a server that hangs
// takes so long.
const startTimeout = 3 * time.Minute

// Start builds the server in the folder of this name, and runs it at a free local address
// until the test ends. args returns the server's arguments for the address. Start returns
// when the server listens. When the test's process ends, so does the server's standard
// input, and the server exits.
func Start(tb interface {
	TB
	Cleanup(f func())
}, name string, args func(addr string) []string) (addr string) {
	tb.Helper()
	ctx := context.Background()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	basictest.NoError(tb, err)
	addr = l.Addr().String()
	_ = l.Close()
	c := exec.Command(Build(tb, name), args(addr)...)
	c.Stderr = os.Stderr
	if _, err := c.StdinPipe(); err != nil {
		tb.Fatalf("%v", err)
	}
	basictest.NoError(tb, c.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Wait() // its error is expected, because Cleanup kills the process
	}()
	tb.Cleanup(func() {
		_ = c.Process.Kill()
		<-ended
	})
	for began := time.Now(); time.Since(began) < startTimeout; time.Sleep(10 * time.Millisecond) {
		if conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr); err == nil {
			_ = conn.Close()
			return addr
		}
		select {
		case <-ended:
			tb.Fatalf("the server %s has ended: %v", name, c.ProcessState)
		default:
		}
	}
	tb.Fatalf("the server %s does not answer at %s", name, addr)
	return ""
}
