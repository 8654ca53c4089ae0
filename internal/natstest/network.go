package natstest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/internal/servertest"
)

// A Network is a cluster whose nodes reach each other only through proxies, so that a
// test can cut it. Clients reach the nodes directly.
type Network struct {
	Nodes []*Server

	tb    TB
	loops sync.WaitGroup
	roads []*road // one for each node and each other node that it dials
}

// StartNetwork starts n servers that are one cluster, and waits until they answer.
func StartNetwork(tb TB, n int) *Network {
	tb.Helper()
	w := &Network{tb: tb}
	tb.Cleanup(w.close)
	listens := make([]string, n)
	for i := range listens {
		listens[i] = "127.0.0.1:" + servertest.FreePort(tb)
	}
	for i := range n {
		var routes []string
		for j := range n {
			if j != i {
				routes = append(routes, "nats://"+w.road(i, j, listens[j]))
			}
		}
		// The nodes announce each other's addresses, which lead nowhere here.
		s := configured(tb, fmt.Sprintf("n%d", i), fmt.Sprintf(
			"cluster { name: c1, listen: %q, advertise: %q, no_advertise: true, pool_size: 1, routes: [%s] }",
			listens[i], "127.0.0.1:1", strings.Join(routes, ", ")))
		w.Nodes = append(w.Nodes, s)
		s.run()
	}
	for _, s := range w.Nodes {
		s.awaitPort()
	}
	return w
}

// CutOff cuts a node off from all others: their connections end, and there are no new
// ones until heal is called.
func (w *Network) CutOff(node int) (heal func()) { return w.cut(node, (*road).refuse) }

// Silence cuts a node off from all others, but keeps the connections open: no byte passes
// until heal is called, which ends them.
func (w *Network) Silence(node int) (heal func()) { return w.cut(node, (*road).freeze) }

func (w *Network) cut(node int, how func(*road)) (heal func()) {
	var of []*road
	for _, r := range w.roads {
		if r.from == node || r.to == node {
			of = append(of, r)
			how(r)
		}
	}
	return func() {
		for _, r := range of {
			r.heal()
		}
	}
}

func (w *Network) close() {
	for _, r := range w.roads {
		_ = r.listener.Close()
		r.heal()
	}
	for _, s := range w.Nodes {
		s.Kill() // otherwise it would dial for ever
	}
	for _, r := range w.roads {
		r.refuse()
	}
	w.loops.Wait()
}

// A road is the proxy for the connections that one node dials to another.
type road struct {
	from, to int
	listener net.Listener

	mu    sync.Mutex
	gone  bool
	stop  chan struct{} // nothing passes until it is closed; nil if everything passes
	conns []net.Conn
}

func (w *Network) road(from, to int, addr string) string {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	noError(w.tb, err)
	r := &road{from: from, to: to, listener: l}
	w.roads = append(w.roads, r)
	w.loops.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if other, err := new(net.Dialer).DialContext(context.Background(), "tcp", addr); err == nil && r.open(c, other) {
				w.loops.Go(func() { r.pass(other, c) })
				w.loops.Go(func() { r.pass(c, other) })
			} else {
				_ = c.Close()
			}
		}
	})
	return l.Addr().String()
}

func (r *road) open(a, b net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		_ = b.Close()
		return false
	}
	r.conns = append(r.conns, a, b)
	return true
}

// pass passes on all bytes, until one of the two ends.
func (r *road) pass(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		r.mu.Lock()
		stop := r.stop
		r.mu.Unlock()
		if stop != nil {
			<-stop
			return // the lost bytes are missing
		}
		if _, werr := to.Write(b[:n]); werr != nil || err != nil {
			return
		}
	}
}

func (r *road) refuse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone = true
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
}

func (r *road) freeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop == nil {
		r.stop = make(chan struct{})
	}
}

func (r *road) heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone = false
	if r.stop == nil {
		return
	}
	close(r.stop)
	r.stop = nil
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
}
