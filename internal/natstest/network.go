package natstest

import (
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/internal/servertest"
)

// A Network is a cluster whose nodes reach each other only through proxies, so that a
// test can cut it. Clients reach the nodes directly.
type Network struct {
	Nodes []*Server

	proxies map[[2]int]*servertest.Proxy // keys: the node that dials, the node that is dialed
}

// StartNetwork starts n servers that are one cluster, and waits until they answer.
func StartNetwork(tb TB, n int) *Network {
	tb.Helper()
	w := &Network{proxies: map[[2]int]*servertest.Proxy{}}
	listenAddrs, routes := make([]string, n), make([][]string, n)
	for to := range n {
		listenAddrs[to] = "127.0.0.1:" + servertest.FreePort(tb)
		for from := range n {
			if from != to {
				p := servertest.StartProxy(tb, listenAddrs[to])
				w.proxies[[2]int{from, to}], routes[from] = p, append(routes[from], "nats://"+p.Addr)
			}
		}
	}
	for i := range n {
		// The nodes announce each other's addresses, which lead nowhere here.
		s := newServer(tb, fmt.Sprintf("n%d", i), fmt.Sprintf(
			"cluster { name: c1, listen: %q, advertise: %q, no_advertise: true, pool_size: 1, routes: [%s] }",
			listenAddrs[i], "127.0.0.1:1", strings.Join(routes[i], ", ")))
		w.Nodes = append(w.Nodes, s)
		s.launch()
	}
	for _, s := range w.Nodes {
		s.awaitPort()
	}
	return w
}

// CutOff cuts a node off from all others: their connections end, and there are no new
// ones until heal is called.
func (w *Network) CutOff(node int) (heal func()) { return w.cut(node, (*servertest.Proxy).Refuse) }

// Silence cuts a node off from all others, but keeps the connections open: no byte passes
// until heal is called, which ends them.
func (w *Network) Silence(node int) (heal func()) {
	return w.cut(node, func(p *servertest.Proxy) {
		p.Silence("") // new connections
		p.Freeze()
	})
}

func (w *Network) cut(node int, block func(*servertest.Proxy)) (heal func()) {
	forEachProxy := func(f func(*servertest.Proxy)) {
		for pair, p := range w.proxies {
			if pair[0] == node || pair[1] == node {
				f(p)
			}
		}
	}
	forEachProxy(block)
	return func() { forEachProxy((*servertest.Proxy).Heal) }
}
