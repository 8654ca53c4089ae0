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

func TestItForwardsToEachTarget(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	serve(t, socket, func(c net.Conn) { _, _ = io.WriteString(c, "socket\n") })
	p := start(t, serve(t, "127.0.0.1:0", func(c net.Conn) { _, _ = io.WriteString(c, "port\n") }), "unix:"+socket)
	for i, want := range []string{"port", "socket"} {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Addresses()[i])
		noError(t, err)
		if got, err := io.ReadAll(c); err != nil || string(got) != want+"\n" {
			t.Errorf("target %d answers %q (%v), not %q", i, got, err, want)
		}
		_ = c.Close()
	}
}

// Both directions are full at the same time, and each ends by itself.
func TestStreamsStayAsTheyAre(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	sent, answered := make([]byte, 2<<20+7), make([]byte, 2<<20+9)
	_, _ = random.Read(sent)
	_, _ = random.Read(answered)
	arrived := make(chan []byte, 1)
	p := start(t, serve(t, "127.0.0.1:0", func(c net.Conn) {
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
		t.Errorf("%d bytes come back (%v), not %d", len(got), err, len(answered))
	}
	if got := within(t, arrived); !bytes.Equal(got, sent) {
		t.Errorf("%d bytes arrive, not %d", len(got), len(sent))
	}
	p.eventually(t, func() bool { return len(p.links) == 0 })
}

// A server that answers after the worker has closed its side still reaches the worker.
func TestAHalfCloseIsPassedOn(t *testing.T) {
	p := start(t, serve(t, "127.0.0.1:0", func(c net.Conn) {
		request, _ := io.ReadAll(c)
		_, _ = io.WriteString(c, "answer to "+string(request))
	}))
	w := p.worker(t)
	w.says("this")
	_ = w.CloseWrite()
	w.hears("answer to this")
	if _, err := w.lines.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ends with %v", err)
	}
}

func TestATargetThatRefusesResetsTheWorker(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	noError(t, err)
	_ = l.Close()
	if start(t, l.Addr().String()).works(t, "hello") {
		t.Error("it answers")
	}
}

// The data before a reset arrives, and then the reset.
func TestAResetOfTheWorkerIsPassedOn(t *testing.T) {
	e := startEcho(t)
	p := start(t, e.addr)
	w := p.worker(t)
	w.isAnswered("last words")
	e.hasHeard(t, "last words")
	_ = w.SetLinger(0)
	_ = w.Close()
	if err := within(t, e.gone); !isReset(err) {
		t.Errorf("the server sees %v, not a reset", err)
	}
}

func TestAResetOfTheServerIsPassedOn(t *testing.T) {
	p := start(t, serve(t, "127.0.0.1:0", func(c net.Conn) {
		_, _ = bufioLine(c)
		_, _ = io.WriteString(c, "last words\n")
		reset(c)
	}))
	w := p.worker(t)
	w.says("hello")
	w.hears("last words")
	w.isReset()
}

// bufioLine reads a line byte by byte, so that nothing behind it is read.
func bufioLine(c net.Conn) (line string, err error) {
	for b := make([]byte, 1); !strings.HasSuffix(line, "\n") && err == nil; line += string(b) {
		_, err = c.Read(b)
	}
	return line, err
}

// A server that closes all of its side resets a worker that goes on.
func TestAWorkerThatWritesToNobodyIsReset(t *testing.T) {
	p := start(t, serve(t, "127.0.0.1:0", func(c net.Conn) { _, _ = io.WriteString(c, "bye\n") }))
	w := p.worker(t)
	w.hears("bye")
	for {
		if _, err := io.WriteString(w, "hello?\n"); err != nil {
			if !isReset(err) {
				t.Errorf("the worker sees %v, not a reset", err)
			}
			return
		}
	}
}

// The same the other way round: the server learns that the worker has gone.
func TestAServerThatWritesToNobodyIsReset(t *testing.T) {
	failed := make(chan error, 1)
	p := start(t, serve(t, "127.0.0.1:0", func(c net.Conn) {
		for {
			if _, err := io.WriteString(c, "news\n"); err != nil {
				failed <- err
				return
			}
		}
	}))
	w := p.worker(t)
	w.hears("news")
	_ = w.Close()
	if err := within(t, failed); !isReset(err) {
		t.Errorf("the server sees %v, not a reset", err)
	}
	p.eventually(t, func() bool { return len(p.links) == 0 })
}

// Neither side reads, or nothing passes: the memory of a pipe has a bound, and nothing is
// lost.
func TestMemoryIsBounded(t *testing.T) {
	arrived := make(chan []byte, 1)
	p := start(t, serve(t, "127.0.0.1:0", func(c net.Conn) {
		all, _ := io.ReadAll(c)
		arrived <- all
	}))
	end := p.Begin(Fault{Kind: history.Silence, Seed: seed(false)})
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
		t.Errorf("a pipe has %d bytes", size)
	}
	p.mu.Unlock()
	end()
	if got := within(t, arrived); !bytes.Equal(got, sent) {
		t.Errorf("%d bytes arrive, not %d", len(got), len(sent))
	}
	if err := within(t, written); err != nil {
		t.Error(err)
	}
}

// Close ends connections in any state: idle, silent, delayed, full, and about to connect.
func TestCloseEndsEverything(t *testing.T) {
	for _, kind := range append(slices.Clone(history.NetworkFaults), "none") {
		t.Run(kind, func(t *testing.T) { checkClose(t, kind) })
	}
}

func checkClose(t *testing.T, kind string) {
	p := start(t, startEcho(t).addr)
	idle, busy := p.worker(t), p.worker(t)
	idle.isAnswered("hello")
	busy.isAnswered("hello")
	var end func() int
	if kind != "none" {
		end = p.Begin(Fault{Kind: kind, MaxDelay: patience})
	}
	fresh := p.tryWorker(t)
	if kind != history.Cut {
		busy.says("late")
		go func() {
			for {
				if _, err := busy.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}()
	}
	p.Close()
	nothingIsLeft(t)
	idle.isReset()
	if fresh != nil {
		fresh.isReset()
	}
	if _, err := net.Dial("tcp", p.Addresses()[0]); err == nil {
		t.Error("it accepts a connection after Close")
	}
	if end != nil {
		end()
		p.Begin(Fault{Kind: history.Silence})() // harmless
	}
	p.Cut()
}
