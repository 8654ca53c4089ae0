package proxy

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

func TestForwardsToEachTarget(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	startServer(t, socket, func(c net.Conn) { _, _ = io.WriteString(c, "socket\n") })
	p := startProxy(t, startServer(t, "127.0.0.1:0", func(c net.Conn) { _, _ = io.WriteString(c, "port\n") }), "unix:"+socket)
	for i, want := range []string{"port", "socket"} {
		c := must(new(net.Dialer).DialContext(t.Context(), "tcp", p.Addresses()[i]))(t)
		if got, err := io.ReadAll(c); err != nil || string(got) != want+"\n" {
			t.Errorf("target %d answers %q (%v), want %q", i, got, err, want)
		}
		_ = c.Close()
	}
}

// Both directions carry more than a pipe's capacity at the same time.
func TestForwardsStreamsUnchanged(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	sent, answered := make([]byte, 2<<20+7), make([]byte, 2<<20+9)
	_, _ = random.Read(sent)
	_, _ = random.Read(answered)
	arrived := make(chan []byte, 1)
	p := startProxy(t, startServer(t, "127.0.0.1:0", func(c net.Conn) {
		go func() {
			_, _ = c.Write(answered)
			_ = c.(*net.TCPConn).CloseWrite()
		}()
		got, _ := io.ReadAll(c)
		arrived <- got
	}))
	w := p.worker(t)
	go func() {
		_, _ = w.Write(sent)
		_ = w.CloseWrite()
	}()
	if got, err := io.ReadAll(w); err != nil || !bytes.Equal(got, answered) {
		t.Errorf("the worker receives %d bytes (%v), want %d", len(got), err, len(answered))
	}
	if got := receive(t, arrived); !bytes.Equal(got, sent) {
		t.Errorf("the server receives %d bytes, want %d", len(got), len(sent))
	}
	p.eventually(t, func() bool { return len(p.links) == 0 })
}

// The worker gets an answer that the server sends after the worker has closed its side.
func TestForwardsAHalfClose(t *testing.T) {
	p := startProxy(t, startServer(t, "127.0.0.1:0", func(c net.Conn) {
		request, _ := io.ReadAll(c)
		_, _ = io.WriteString(c, "answer to "+string(request))
	}))
	w := p.worker(t)
	w.sends("this")
	_ = w.CloseWrite()
	w.receives("answer to this")
	if _, err := w.lines.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ends with %v, want EOF", err)
	}
}

func TestARefusingTargetResetsTheWorker(t *testing.T) {
	l := must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	_ = l.Close()
	if startProxy(t, l.Addr().String()).works(t, "hello") {
		t.Error("a connection to a target that refuses works")
	}
}

// The server receives the data before the reset, and then the reset.
func TestForwardsAResetOfTheWorker(t *testing.T) {
	e := startEcho(t)
	p := startProxy(t, e.addr)
	w := p.worker(t)
	w.exchanges("last words")
	e.waitReceived(t, "last words")
	_ = w.SetLinger(0)
	_ = w.Close()
	if err := receive(t, e.ended); !isReset(err) {
		t.Errorf("the server sees %v, want a reset", err)
	}
}

func TestForwardsAResetOfTheServer(t *testing.T) {
	p := startProxy(t, startServer(t, "127.0.0.1:0", func(c net.Conn) {
		_, _ = readLine(c)
		_, _ = io.WriteString(c, "last words\n")
		reset(c)
	}))
	w := p.worker(t)
	w.sends("hello")
	w.receives("last words")
	w.wantReset()
}

// readLine reads a line byte by byte, so that it reads no data behind it.
func readLine(c net.Conn) (line string, err error) {
	for b := make([]byte, 1); !strings.HasSuffix(line, "\n") && err == nil; line += string(b) {
		_, err = c.Read(b)
	}
	return line, err
}

// If the server has closed the connection, a worker that still writes gets a reset.
func TestAWorkerThatWritesToAClosedServerIsReset(t *testing.T) {
	p := startProxy(t, startServer(t, "127.0.0.1:0", func(c net.Conn) { _, _ = io.WriteString(c, "bye\n") }))
	w := p.worker(t)
	w.receives("bye")
	for {
		if _, err := io.WriteString(w, "hello?\n"); err != nil {
			if !isReset(err) {
				t.Errorf("the worker sees %v, want a reset", err)
			}
			return
		}
	}
}

// If the worker has closed the connection, a server that still writes gets a reset.
func TestAServerThatWritesToAClosedWorkerIsReset(t *testing.T) {
	failed := make(chan error, 1)
	p := startProxy(t, startServer(t, "127.0.0.1:0", func(c net.Conn) {
		for {
			if _, err := io.WriteString(c, "news\n"); err != nil {
				failed <- err
				return
			}
		}
	}))
	w := p.worker(t)
	w.receives("news")
	_ = w.Close()
	if err := receive(t, failed); !isReset(err) {
		t.Errorf("the server sees %v, want a reset", err)
	}
	p.eventually(t, func() bool { return len(p.links) == 0 })
}

// While the proxy forwards no data, the memory of a pipe is bounded. No data is lost.
func TestTheMemoryOfAPipeIsBounded(t *testing.T) {
	arrived := make(chan []byte, 1)
	p := startProxy(t, startServer(t, "127.0.0.1:0", func(c net.Conn) {
		all, _ := io.ReadAll(c)
		arrived <- all
	}))
	end := p.Begin(Fault{Kind: history.Silence, Seed: silenceSeed(false)})
	w := p.worker(t)
	sent := make([]byte, 6<<20)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(sent)
	written := make(chan error, 1)
	go func() {
		_, err := io.Copy(w.TCPConn, bytes.NewReader(sent))
		_ = w.CloseWrite()
		written <- err
	}()
	p.eventually(t, func() bool { return w.link.requests.size > pipeCapacity-pieceSize-pieceOverhead })
	p.mu.Lock()
	if size := w.link.requests.size; size > pipeCapacity {
		t.Errorf("a pipe has %d bytes, want at most %d", size, pipeCapacity)
	}
	p.mu.Unlock()
	end()
	if got := receive(t, arrived); !bytes.Equal(got, sent) {
		t.Errorf("the server receives %d bytes, want %d", len(got), len(sent))
	}
	if err := receive(t, written); err != nil {
		t.Error(err)
	}
}

// Close ends connections in each state: idle, silent, delayed, full, and connecting.
func TestCloseEndsEverything(t *testing.T) {
	for _, kind := range append(slices.Clone(history.NetworkFaults), "none") {
		t.Run(kind, func(t *testing.T) { checkClose(t, kind) })
	}
}

func checkClose(t *testing.T, kind string) {
	p := startProxy(t, startEcho(t).addr)
	idle, busy := p.worker(t), p.worker(t)
	idle.exchanges("hello")
	busy.exchanges("hello")
	var end func() int
	if kind != "none" {
		end = p.Begin(Fault{Kind: kind, MaxDelay: timeout})
	}
	fresh := p.tryWorker(t)
	if kind != history.Cut {
		busy.sends("late")
		go func() {
			for {
				if _, err := busy.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}()
	}
	p.Close()
	noGoroutineLeft(t)
	idle.wantReset()
	if fresh != nil {
		fresh.wantReset()
	}
	if _, err := net.Dial("tcp", p.Addresses()[0]); err == nil {
		t.Error("the proxy accepts a connection after Close")
	}
	if end != nil {
		end()
		p.Begin(Fault{Kind: history.Silence})() // harmless
	}
	p.Cut()
}
