package proxy

import (
	"context"
	"net"
	"slices"
	"strings"
)

// A link is a connection of the worker, and the connection to the target for it.
type link struct {
	proxy  *Proxy
	target string
	client net.Conn
	life   context.Context // it ends with the link
	end    context.CancelFunc

	// The mutex of the proxy protects these.
	server            net.Conn // nil until it is connected
	requests, replies pipe
	hole              bool // Swallow has dropped a reply
	over              bool
}

func newLink(p *Proxy, client net.Conn, target string) *link {
	l := &link{proxy: p, target: target, client: client}
	l.life, l.end = context.WithCancel(context.Background())
	l.requests.init(l, &l.replies)
	l.replies.init(l, &l.requests)
	l.requests.from, l.replies.to = client, client
	return l
}

// run connects to the target, and passes on what both sides send.
func (l *link) run() {
	p := l.proxy
	p.loops.Go(l.requests.read) // before there is a server, so that a silent fault counts what it holds back
	l.awaitSilence()
	server, err := Dial(l.life, l.target)
	p.mu.Lock()
	if err != nil || l.over {
		if err == nil {
			_ = server.Close()
		}
		l.reset() // the worker sees the same as from a target that refuses
		p.mu.Unlock()
		return
	}
	l.server, l.requests.to, l.replies.from = server, server, server
	p.mu.Unlock()
	p.loops.Go(l.replies.read)
	p.loops.Go(l.replies.write)
	l.requests.write()
}

// awaitSilence returns when the target may see the connection, or when the link is over.
func (l *link) awaitSilence() {
	for {
		l.proxy.mu.Lock()
		r := l.proxy.fault
		l.proxy.mu.Unlock()
		if !r.silent() {
			return
		}
		select {
		case <-r.ended:
		case <-l.life.Done():
			return
		}
	}
}

// Dial connects to a target.
func Dial(ctx context.Context, target string) (net.Conn, error) {
	if path, ok := strings.CutPrefix(target, "unix:"); ok {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", target)
}

// reset ends the link so that both sides see it as an error. The caller holds the mutex.
func (l *link) reset() {
	if l.leave() {
		reset(l.client)
		reset(l.server)
	}
}

// close ends the link after both sides have read the end of the other one. The caller
// holds the mutex.
func (l *link) close() {
	if l.leave() {
		_ = l.client.Close()
		_ = l.server.Close()
	}
}

// leave removes the link from the proxy, and reports whether it was there.
func (l *link) leave() bool {
	if l.over {
		return false
	}
	l.over = true
	l.end()
	l.proxy.links = slices.DeleteFunc(l.proxy.links, func(other *link) bool { return other == l })
	return true
}

// reset closes a connection with RST, and drops what it has not sent. c may be nil.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	if c != nil {
		_ = c.Close()
	}
}
