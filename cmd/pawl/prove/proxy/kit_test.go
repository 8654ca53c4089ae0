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

// The steps that all tests share.
var noError = basictest.NoError

// patience is the bound of waits that are short on an idle machine.
const patience = 30 * time.Second

// An echo is a server that answers each line with the same line.
type echo struct {
	addr  string
	heard chan string // each line when it arrives
	gone  chan error  // how each connection ends: io.EOF if it does properly
}

func startEcho(t *testing.T) *echo {
	t.Helper()
	e := &echo{heard: make(chan string, 10_000), gone: make(chan error, 10_000)}
	e.addr = serve(t, "127.0.0.1:0", func(c net.Conn) {
		lines := bufio.NewReader(c)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				e.gone <- err
				return
			}
			e.heard <- line
			if _, err := io.WriteString(c, line); err != nil {
				e.gone <- err
				return
			}
		}
	})
	return e
}

// serve starts a server that handles each connection, and closes it then.
func serve(t *testing.T, addr string, handle func(c net.Conn)) string {
	t.Helper()
	network := "tcp"
	if strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), network, addr)
	noError(t, err)
	var loops sync.WaitGroup
	life, end := context.WithCancel(context.Background())
	loops.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			loops.Go(func() {
				defer context.AfterFunc(life, func() { _ = c.Close() })()
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

// start starts a proxy. When the test ends, it has no goroutine any more.
func start(t *testing.T, targets ...string) *Proxy {
	t.Helper()
	p, err := Start(targets)
	noError(t, err)
	t.Cleanup(func() {
		p.Close()
		p.Close() // does nothing
		nothingIsLeft(t)
	})
	return p
}

// Cut resets all connections, also while a fault lasts. New connections work.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
}

// nothingIsLeft fails if a goroutine runs in a method of the proxy, its links or pipes.
func nothingIsLeft(t *testing.T) {
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
		t.Fatal("the proxy resets a connection")
	}
	p.eventually(t, func() bool { // the dialer may be done before the proxy has accepted
		i := slices.IndexFunc(p.links, func(l *link) bool { return l.client.RemoteAddr().String() == w.LocalAddr().String() })
		if i >= 0 {
			w.link = p.links[i]
		}
		return i >= 0
	})
	return w
}

// tryWorker returns nil if the proxy resets the connection before the dialer is done.
func (p *Proxy) tryWorker(t *testing.T) *worker {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Addresses()[0])
	if isReset(err) {
		return nil
	}
	noError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return &worker{TCPConn: c.(*net.TCPConn), t: t, lines: bufio.NewReader(c)}
}

func (w *worker) says(line string) {
	w.t.Helper()
	if _, err := io.WriteString(w, line+"\n"); err != nil {
		w.t.Fatalf("the worker cannot say %q: %v", line, err)
	}
}

func (w *worker) hears(want string) {
	w.t.Helper()
	if got, err := w.lines.ReadString('\n'); err != nil || got != want+"\n" {
		w.t.Fatalf("the worker hears %q (%v), not %q", got, err, want)
	}
}

// isAnswered says a line, and waits for the answer.
func (w *worker) isAnswered(line string) {
	w.t.Helper()
	w.says(line)
	w.hears(line)
}

func (w *worker) isReset() {
	w.t.Helper()
	if got, err := w.lines.ReadString('\n'); !isReset(err) {
		w.t.Fatalf("the worker hears %q (%v), not a reset", got, err)
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
	t.Fatalf("the worker hears %q (%v)", got, err)
	return false
}

func isReset(err error) bool {
	const windows = syscall.Errno(10054) // WSAECONNRESET
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, windows)
}

// hasHeard waits for a line that arrives at the server.
func (e *echo) hasHeard(t *testing.T, want string) {
	t.Helper()
	if got := within(t, e.heard); got != want+"\n" {
		t.Fatalf("%q arrives, not %q", got, want)
	}
}

// within receives from a channel.
func within[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatal("nothing happens")
	}
	return v
}

// hits waits until the fault has hit so many pieces.
func (p *Proxy) hits(t *testing.T, want int) {
	t.Helper()
	p.eventually(t, func() bool { return p.fault.hit >= want })
}

// eventually waits until something is true under the mutex.
func (p *Proxy) eventually(t *testing.T, is func() bool) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(time.Millisecond) {
		if p.locked(is) {
			return
		}
	}
	t.Fatal("it does not happen")
}

func (p *Proxy) locked(is func() bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return is()
}

// seed returns a seed with which Silence ends with a reset, or without.
func seed(resets bool) uint64 {
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
