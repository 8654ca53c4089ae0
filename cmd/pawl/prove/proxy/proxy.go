// Package proxy forwards the connections of one worker of pawl prove to the server, and
// causes faults in them. It does not import Pawl's locks, so that it cannot share their
// bugs.
//
// A proxy differs from a faulty network: the kernel of this host acknowledges all data
// that the proxy receives, even while it forwards nothing. So no side sees a TCP
// retransmission or a failed TCP keepalive.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// A Proxy forwards the connections of one worker to the nodes of a server. Its methods
// are safe for concurrent use.
type Proxy struct {
	listeners []net.Listener
	loops     sync.WaitGroup

	mu     sync.Mutex // protects the fields below, and fields of all links and pipes
	closed bool
	links  []*link
	fault  *activeFault // nil without a fault
}

// Start listens on one port of 127.0.0.1 for each target that Split returned. The proxy
// connects to a target when the worker connects to its port.
func Start(targets []string) (*Proxy, error) {
	p := &Proxy{}
	for _, t := range targets {
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			p.Close()
			return nil, fmt.Errorf("proxy: %w", err)
		}
		p.listeners = append(p.listeners, l)
		p.loops.Go(func() { p.serve(l, t) })
	}
	return p, nil
}

// Addresses returns the addresses of the listeners, in the order of the targets.
func (p *Proxy) Addresses() []string {
	var all []string
	for _, l := range p.listeners {
		all = append(all, l.Addr().String())
	}
	return all
}

// serve accepts the connections to one target.
func (p *Proxy) serve(listener net.Listener, target string) {
	for {
		client, err := listener.Accept()
		switch {
		case err == nil:
			p.connect(client, target)
		case errors.Is(err, net.ErrClosed):
			return
		default: // too many open files, or the client is gone
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// connect makes a link for a connection, unless a fault resets it.
func (p *Proxy) connect(client net.Conn, target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.fault.cuts() {
		reset(client)
		return
	}
	l := newLink(p, client, target)
	p.links = append(p.links, l)
	p.fault.chooseDelayed(l)
	p.loops.Go(l.run)
}

// cut resets all connections, and returns their number. The caller holds the mutex.
func (p *Proxy) cut() int {
	all := slices.Clone(p.links)
	for _, l := range all {
		l.reset()
	}
	return len(all)
}

// Close resets all connections, and returns when all goroutines of the proxy have ended.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true // so that connect adds no link after cut
	for _, l := range p.listeners {
		_ = l.Close()
	}
	p.cut()
	p.mu.Unlock()
	p.loops.Wait()
}
