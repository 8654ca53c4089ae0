package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/internal/basictest"
)

// Helpers of all tests.
var noError = basictest.NoError

func must[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

// timeout bounds the waits of the tests. On an idle machine they are short.
const timeout = 30 * time.Second

// An echo is a server that answers each line with the same line.
type echo struct {
	addr     string
	received chan string // each line that arrives
	ended    chan error  // the error that ends each connection; io.EOF without a failure
}

func startEcho(t *testing.T) *echo {
	t.Helper()
	e := &echo{received: make(chan string, 10_000), ended: make(chan error, 10_000)}
	e.addr = startServer(t, "127.0.0.1:0", func(c net.Conn) {
		lines := bufio.NewReader(c)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				e.ended <- err
				return
			}
			e.received <- line
			if _, err := io.WriteString(c, line); err != nil {
				e.ended <- err
				return
			}
		}
	})
	return e
}

// startServer starts a server that calls handle for each connection and then closes it.
func startServer(t *testing.T, addr string, handle func(c net.Conn)) string {
	t.Helper()
	network := "tcp"
	if strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	l := must(new(net.ListenConfig).Listen(t.Context(), network, addr))(t)
	var loops sync.WaitGroup
	running, end := context.WithCancel(context.Background())
	loops.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			loops.Go(func() {
				defer context.AfterFunc(running, func() { _ = c.Close() })()
				defer c.Close()
				handle(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		end()
		loops.Wait()
	})
	return l.Addr().String()
}

// startProxy starts a proxy. At the end of the test it closes the proxy, and checks that
// no goroutine is left.
func startProxy(t *testing.T, targets ...string) *Proxy {
	t.Helper()
	p := must(Start(targets))(t)
	t.Cleanup(func() {
		p.Close()
		p.Close() // has no effect
		noGoroutineLeft(t)
	})
	return p
}

// Cut resets all connections, even while a fault lasts. New connections work.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
}

// noGoroutineLeft fails the test if a goroutine runs a method of a proxy, link or pipe.
func noGoroutineLeft(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	all := string(stacks[:runtime.Stack(stacks, true)])
	for _, method := range []string{"proxy.(*Proxy).", "proxy.(*link).", "proxy.(*pipe)."} {
		for stack := range strings.SplitSeq(all, "\n\n") {
			if strings.Contains(stack, method) {
				t.Errorf("a goroutine is left:\n%s", stack)
			}
		}
	}
}

// A worker is a connection of a worker to the proxy.
type worker struct {
	*net.TCPConn
	t     *testing.T
	lines *bufio.Reader
	link  *link
}

func (p *Proxy) worker(t *testing.T) *worker {
	t.Helper()
	w := p.tryWorker(t)
	if w == nil {
		t.Fatal("the proxy reset a new connection")
	}
	p.eventually(t, func() bool { // Dial may return before the proxy accepts
		i := slices.IndexFunc(p.links, func(l *link) bool { return l.client.RemoteAddr().String() == w.LocalAddr().String() })
		if i >= 0 {
			w.link = p.links[i]
		}
		return i >= 0
	})
	return w
}

// tryWorker returns nil if the proxy resets the connection before Dial returns.
func (p *Proxy) tryWorker(t *testing.T) *worker {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Addresses()[0])
	if isReset(err) {
		return nil
	}
	noError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(timeout))
	return &worker{TCPConn: c.(*net.TCPConn), t: t, lines: bufio.NewReader(c)}
}

func (w *worker) sends(line string) {
	w.t.Helper()
	if _, err := io.WriteString(w, line+"\n"); err != nil {
		w.t.Fatalf("the worker cannot send %q: %v", line, err)
	}
}

func (w *worker) receives(want string) {
	w.t.Helper()
	if got, err := w.lines.ReadString('\n'); err != nil || got != want+"\n" {
		w.t.Fatalf("the worker receives %q (%v), want %q", got, err, want)
	}
}

// exchanges sends a line, and waits for the same line.
func (w *worker) exchanges(line string) {
	w.t.Helper()
	w.sends(line)
	w.receives(line)
}

func (w *worker) wantReset() {
	w.t.Helper()
	if got, err := w.lines.ReadString('\n'); !isReset(err) {
		w.t.Fatalf("the worker receives %q (%v), want a reset", got, err)
	}
}

// works reports whether a new connection gets an answer.
func (p *Proxy) works(t *testing.T, line string) bool {
	t.Helper()
	w := p.tryWorker(t)
	if w == nil {
		return false
	}
	_, err := io.WriteString(w, line+"\n")
	var got string
	if err == nil {
		got, err = w.lines.ReadString('\n')
	}
	switch {
	case err == nil && got == line+"\n":
		return true
	case isReset(err):
		return false
	}
	t.Fatalf("the worker receives %q (%v), want an answer or a reset", got, err)
	return false
}

func isReset(err error) bool {
	const windows = syscall.Errno(10054) // WSAECONNRESET
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, windows)
}

// waitReceived waits until the server receives a line.
func (e *echo) waitReceived(t *testing.T, want string) {
	t.Helper()
	if got := receive(t, e.received); got != want+"\n" {
		t.Fatalf("the server receives %q, want %q", got, want)
	}
}

// receive receives from a channel, at most for timeout.
func receive[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(timeout):
		t.Fatalf("no value arrives within %v", timeout)
	}
	return v
}

// waitHits waits until the fault has hit at least that many pieces.
func (p *Proxy) waitHits(t *testing.T, want int) {
	t.Helper()
	p.eventually(t, func() bool { return p.fault.hit >= want })
}

// eventually waits until a condition is true under the mutex.
func (p *Proxy) eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < timeout; time.Sleep(time.Millisecond) {
		if p.locked(condition) {
			return
		}
	}
	t.Fatalf("the condition is not true within %v", timeout)
}

func (p *Proxy) locked(condition func() bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return condition()
}

// silenceSeed returns a seed with which Silence ends in a reset, or in no reset.
func silenceSeed(resets bool) uint64 {
	for s := uint64(0); ; s++ {
		p := &Proxy{}
		end := p.Begin(Fault{Kind: history.Silence, Seed: s})
		r := p.fault
		end()
		if r.resets == resets {
			return s
		}
	}
}
