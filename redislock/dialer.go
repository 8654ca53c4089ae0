package redislock

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/internal/redisscript"
)

// dialer makes the connections of what was opened for a driver, and tells the driver of
// each further one: it may lead to another server than the last. It exists before the
// driver does.
type dialer struct {
	life   context.Context // until the clients are closed
	driver atomic.Pointer[redisscript.Driver]

	mu   sync.Mutex // protects open
	open map[*greeted]bool
}

type dialing func(ctx context.Context, addr string, d *net.Dialer, t *tls.Config) (net.Conn, error)

// over dials with dial, or as rueidis does. telling is for connections of which the
// driver has to hear.
func (o *dialer) over(dial dialing, telling bool) dialing {
	if dial == nil {
		dial = func(ctx context.Context, addr string, d *net.Dialer, t *tls.Config) (net.Conn, error) {
			if t != nil {
				return (&tls.Dialer{NetDialer: d, Config: t}).DialContext(ctx, "tcp", addr)
			}
			return d.DialContext(ctx, "tcp", addr)
		}
	}
	return func(ctx context.Context, addr string, d *net.Dialer, t *tls.Config) (net.Conn, error) {
		ctx, cancel := context.WithCancel(ctx)
		forget := context.AfterFunc(o.life, cancel)
		c, err := dial(ctx, addr, d, t)
		if err != nil {
			forget()
			cancel()
			return nil, err
		}
		if d := o.driver.Load(); d != nil && telling {
			d.Reconnected()
		}
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		g := &greeted{Conn: c, stop: func() { stop(); forget(); cancel() }}
		if telling {
			g.over = o
			o.note(g, true)
		}
		return g, nil
	}
}

// note keeps the list of connections for commands.
func (o *dialer) note(g *greeted, open bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case !open:
		delete(o.open, g)
	case o.open == nil:
		o.open = map[*greeted]bool{g: true}
	default:
		o.open[g] = true
	}
}

// waiting is Waiting of redisscript.Interruptible.
func (o *dialer) waiting() (interrupt func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make(map[*greeted]uint64, len(o.open))
	for g := range o.open {
		if n := g.reads.Load(); n%2 == 1 {
			all[g] = n
		}
	}
	return func() {
		for g, n := range all {
			if g.reads.Load() == n {
				g.ended.Store(n)
				_ = g.SetReadDeadline(time.Unix(1, 0)) // the next request would set another one
			}
		}
	}
}

// greeted is a connection that ends with the ctx of who made it, and when the clients are
// closed, until the server has said something. rueidis would wait for that: Close would
// hang for as long as a server does.
type greeted struct {
	net.Conn
	stop func()
	done atomic.Bool

	over  *dialer       // nil if it is not for commands
	reads atomic.Uint64 // that have begun and ended: odd while it waits
	ended atomic.Uint64 // the one that was interrupted
}

func (g *greeted) Close() error {
	if g.over != nil {
		g.over.note(g, false)
	}
	return g.Conn.Close()
}

func (g *greeted) Read(b []byte) (int, error) {
	read := g.reads.Add(1)
	n, err := g.Conn.Read(b)
	g.reads.Add(1)
	if err != nil && g.ended.Load() == read {
		// Others waited behind the one who gave up. To them it was lost, and no timeout:
		// what they sent is sent again.
		err = net.ErrClosed
	}
	if n > 0 && !g.done.Load() {
		g.done.Store(true)
		g.stop()
	}
	return n, err
}
