package redislock

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"

	"github.com/pawl-go/pawl/internal/redisscript"
)

// dialer makes the connections of what was opened for a driver, and tells the driver of each further one: it may lead to
// another server than the last. It exists before the driver does.
type dialer struct {
	life   context.Context // until the clients are closed
	driver atomic.Pointer[redisscript.Driver]
}

type dialing func(ctx context.Context, addr string, d *net.Dialer, t *tls.Config) (net.Conn, error)

// over dials with dial, or as rueidis does. telling is for connections of which the driver has to hear.
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
		return &greeted{Conn: c, stop: func() { stop(); forget(); cancel() }}, nil
	}
}

// greeted is a connection that ends with the ctx of who made it, and when the clients are closed, until the server has said
// something. rueidis would wait for that: Close would hang for as long as a server does.
type greeted struct {
	net.Conn
	stop func()
	done atomic.Bool
}

func (g *greeted) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	if n > 0 && !g.done.Load() {
		g.done.Store(true)
		g.stop()
	}
	return n, err
}
