package drivertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// A Network is the suite's network between one client and its servers. It can delay or
// refuse requests, and lose answers. A client uses it through [Network.Dial], or the
// [Network.Addr] of each of its servers. A client in memory that imitates a network calls
// [Network.Send] and [Network.Answer].
type Network struct {
	t testing.TB

	mu           sync.Mutex // protects the fields below
	proxies      map[string]*proxy
	conns        map[net.Conn]bool
	gate         chan struct{} // requests wait until it is closed; nil means no wait
	delay        time.Duration // of each request
	down         bool          // all connections are refused
	answerToLose int           // the index of the answer to lose, from 1; 0 means none
	used         bool          // a request was sent
	closed       bool
	loops        sync.WaitGroup
}

// A proxy accepts connections for one server.
type proxy struct {
	network, to string
	listener    net.Listener
}

func newNetwork(t testing.TB) *Network {
	n := &Network{t: t, proxies: map[string]*proxy{}, conns: map[net.Conn]bool{}}
	t.Cleanup(n.close)
	return n
}

// Addr returns the address of the proxy before a server, "127.0.0.1:PORT". The parameter
// is the server's own address, "host:port".
func (n *Network) Addr(server string) string {
	n.t.Helper()
	r, err := n.proxy("tcp", server)
	if err != nil {
		n.t.Fatalf("the suite's proxy before %s: %v", server, err)
	}
	return r.listener.Addr().String()
}

// Dial dials a server, as net.Dialer.DialContext does. A client whose TLS checks the
// server's name, or that learns addresses from its servers, needs it instead of Addr.
func (n *Network) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	r, err := n.proxy(network, addr)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, "tcp", r.listener.Addr().String())
}

// Send sends a request of a client in memory. arrives is closed when the request is at
// the server, even if the client has given it up by then. Send returns an error if the
// network is down.
func (n *Network) Send() (arrives <-chan struct{}, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.used = true
	switch {
	case n.down:
		return nil, errors.New("connection refused")
	case n.delay > 0:
		late := make(chan struct{})
		time.AfterFunc(n.delay, func() { close(late) })
		return late, nil
	case n.gate != nil:
		return n.gate, nil
	}
	return arrived, nil
}

// Answer must be called by a client in memory before it returns the server's answer. It
// returns an error if the answer is lost.
func (n *Network) Answer() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.answerToLose == 0 {
		return nil
	}
	if n.answerToLose--; n.answerToLose > 0 {
		return nil
	}
	return errors.New("connection reset by peer")
}

var arrived = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// delayRequests delays all later requests until letArrive, which may be called twice.
func (n *Network) delayRequests() (letArrive func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	gate := make(chan struct{})
	n.gate = gate
	return sync.OnceFunc(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.gate == gate {
			n.gate = nil
		}
		close(gate)
	})
}

// addDelay makes each request take longer by d from now on.
func (n *Network) addDelay(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delay = d
}

// loseAnswer loses the nth answer from now on, and ends its connection. wasLost reports
// whether the answer was lost. If it was not, wasLost cancels the loss.
func (n *Network) loseAnswer(nth int) (wasLost func() bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answerToLose = nth
	return func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		happened := n.answerToLose == 0
		n.answerToLose = 0
		return happened
	}
}

// cutConnections ends all connections, and refuses new ones.
func (n *Network) cutConnections() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = true
	n.closeConns()
}

// closeConns closes all connections. The caller holds the mutex.
func (n *Network) closeConns() {
	for c := range n.conns {
		_ = c.Close()
	}
}

func (n *Network) close() {
	n.mu.Lock()
	n.closed = true
	for _, r := range n.proxies {
		_ = r.listener.Close()
	}
	if n.gate != nil {
		close(n.gate)
		n.gate = nil
	}
	n.closeConns()
	n.mu.Unlock()
	n.loops.Wait()
}

func (n *Network) proxy(network, to string) (*proxy, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r := n.proxies[network+to]; r != nil {
		return r, nil
	}
	if n.closed {
		return nil, net.ErrClosed
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &proxy{network, to, l}
	n.proxies[network+to] = r
	n.loops.Go(func() { n.serve(r) })
	return r, nil
}

func (n *Network) serve(r *proxy) {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		server, err := new(net.Dialer).DialContext(context.Background(), r.network, r.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		n.mu.Lock()
		if n.conns[client], n.conns[server] = true, true; n.down || n.closed {
			n.closeConns()
		}
		n.loops.Go(func() { n.requests(client, server) })
		n.loops.Go(func() { n.replies(client, server) })
		n.mu.Unlock()
	}
}

// requests forwards the requests of a client. If the client closes while requests are
// delayed, the server still reads all of them before the end of the stream.
func (n *Network) requests(client, server net.Conn) {
	arrivals := make(chan func(), 1024)
	n.loops.Go(func() {
		for arrive := range arrivals {
			arrive()
		}
		if half, ok := server.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	})
	defer close(arrivals)
	b := make([]byte, 64<<10)
	for {
		size, err := client.Read(b)
		n.mu.Lock()
		gate, due := n.gate, time.Now().Add(n.delay)
		n.used = n.used || size > 0
		n.mu.Unlock()
		part := bytes.Clone(b[:size])
		arrivals <- func() {
			if gate != nil {
				<-gate
			}
			time.Sleep(time.Until(due))
			_, _ = server.Write(part)
		}
		if err != nil {
			return
		}
	}
}

func (n *Network) replies(client, server net.Conn) {
	b := make([]byte, 64<<10)
	for {
		size, err := server.Read(b)
		if size > 0 {
			if err = n.Answer(); err == nil {
				_, err = client.Write(b[:size])
			}
		}
		if err != nil {
			break
		}
	}
	_ = client.Close()
	_, _ = io.Copy(io.Discard, server) // until the server has read all requests
	_ = server.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, client)
	delete(n.conns, server)
}

// wasUsed reports whether a request was sent.
func (n *Network) wasUsed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.used
}
