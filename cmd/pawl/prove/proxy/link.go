package proxy

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// A link is a connection of the worker, and the connection to the target for it.
type link struct {
	proxy   *Proxy
	target  string
	client  net.Conn
	dialing context.Context // it ends with the link
	end     context.CancelFunc

	// The mutex of the proxy protects these.
	changed           *sync.Cond // anything here or in the pipes, or the proxy's fault
	server            net.Conn   // nil until it is connected
	requests, replies pipe
	hole              bool // Swallow has dropped a reply
	over              bool
}

func newLink(p *Proxy, client net.Conn, target string) *link {
	l := &link{proxy: p, target: target, client: client, changed: sync.NewCond(&p.mu)}
	l.dialing, l.end = context.WithCancel(context.Background())
	l.requests = pipe{link: l, other: &l.replies, from: client}
	l.replies = pipe{link: l, other: &l.requests, to: client}
	return l
}

// run connects to the target, and passes on what both sides send.
func (l *link) run() {
	p := l.proxy
	p.loops.Go(l.requests.read) // before there is a server, so that a silent fault counts what it holds back
	p.mu.Lock()
	for p.fault.silent() && !l.over {
		l.changed.Wait()
	}
	p.mu.Unlock()
	server, err := Dial(l.dialing, l.target)
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

// wait waits for a change, but no longer than d if that is not 0. The caller holds the
// mutex.
func (l *link) wait(d time.Duration) {
	if d > 0 {
		timer := time.AfterFunc(d, func() {
			l.proxy.mu.Lock() // so that it is not before Wait
			defer l.proxy.mu.Unlock()
			l.changed.Broadcast()
		})
		defer timer.Stop()
	}
	l.changed.Wait()
}

// makeAllDue makes all pieces due. The caller holds the mutex.
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
	l.changed.Broadcast()
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
