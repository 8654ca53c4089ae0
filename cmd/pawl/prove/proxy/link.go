package proxy

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// A link is a connection of the worker to the proxy, and the proxy's own to the target.
type link struct {
	proxy      *Proxy
	target     string
	client     net.Conn
	dialCtx    context.Context // ends with the link
	cancelDial context.CancelFunc

	// The proxy's mutex protects these fields.
	changed           *sync.Cond // for changes of this link, its pipes and the proxy's fault
	server            net.Conn   // nil until it is connected
	requests, replies pipe
	replyDropped      bool // Swallow has dropped a reply
	closed            bool
}

func newLink(p *Proxy, client net.Conn, target string) *link {
	l := &link{proxy: p, target: target, client: client, changed: sync.NewCond(&p.mu)}
	l.dialCtx, l.cancelDial = context.WithCancel(context.Background())
	l.requests = pipe{link: l, other: &l.replies, from: client}
	l.replies = pipe{link: l, other: &l.requests, to: client}
	return l
}

// run connects to the target, and forwards the data of both sides.
func (l *link) run() {
	p := l.proxy
	p.loops.Go(l.requests.read) // before Dial, so that Silence counts the requests that it holds back
	p.mu.Lock()
	for p.fault.silent() && !l.closed {
		l.changed.Wait()
	}
	p.mu.Unlock()
	server, err := Dial(l.dialCtx, l.target)
	p.mu.Lock()
	if err != nil || l.closed {
		if err == nil {
			_ = server.Close()
		}
		l.reset() // as a target does that refuses the connection
		p.mu.Unlock()
		return
	}
	l.server, l.requests.to, l.replies.from = server, server, server
	p.mu.Unlock()
	p.loops.Go(l.replies.read)
	p.loops.Go(l.replies.write)
	l.requests.write()
}

// wait waits for a change, at most for d if d is not 0. The caller holds the mutex.
func (l *link) wait(d time.Duration) {
	if d > 0 {
		timer := time.AfterFunc(d, func() {
			l.proxy.mu.Lock() // so that Wait has begun before the Broadcast
			defer l.proxy.mu.Unlock()
			l.changed.Broadcast()
		})
		defer timer.Stop()
	}
	l.changed.Wait()
}

// makeAllDue ends the delays of all pieces. The caller holds the mutex.
func (l *link) makeAllDue() {
	for _, queue := range [][]piece{l.requests.queue, l.replies.queue} {
		for i := range queue {
			queue[i].due = time.Time{}
		}
	}
	l.changed.Broadcast()
}

// Dial connects to a target.
func Dial(ctx context.Context, target string) (net.Conn, error) {
	if path, ok := strings.CutPrefix(target, "unix:"); ok {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", target)
}

// reset resets both connections of the link. The caller holds the mutex.
func (l *link) reset() {
	if l.unlink() {
		reset(l.client)
		reset(l.server)
	}
}

// close ends a link on which both directions have ended. The caller holds the mutex.
func (l *link) close() {
	if l.unlink() {
		_ = l.client.Close()
		_ = l.server.Close()
	}
}

// unlink removes the link from the proxy. It returns false if the link was closed before.
func (l *link) unlink() bool {
	if l.closed {
		return false
	}
	l.closed = true
	l.cancelDial()
	l.changed.Broadcast()
	l.proxy.links = slices.DeleteFunc(l.proxy.links, func(other *link) bool { return other == l })
	return true
}

// reset closes a connection with RST, which drops unsent data. c may be nil.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	if c != nil {
		_ = c.Close()
	}
}
