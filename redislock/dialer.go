package redislock

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/redisscript"
)

// dialer makes the connections of a driver that was opened by URL. It notifies the driver
// of each new connection, which may go to another server.
type dialer struct {
	network      string          // "tcp" or "unix"
	life         context.Context // ends when the clients are closed
	tls          *engine.TLS
	isRefusing   atomic.Bool                        // each dial fails with errNotConnected
	driver       atomic.Pointer[redisscript.Driver] // nil until the driver exists
	commandConns sync.Map                           // has the *dialedConn of each open connection for commands
}

type dialFunc func(ctx context.Context, addr string, d *net.Dialer, t *tls.Config) (net.Conn, error)

// dial returns a function that dials as rueidis does. With forCommands, the dialer
// notifies the driver of each connection.
func (o *dialer) dial(forCommands bool) dialFunc {
	return func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		if o.isRefusing.Load() {
			return nil, errNotConnected
		}
		ctx, cancel := context.WithCancel(ctx)
		stopLife := context.AfterFunc(o.life, cancel)
		dial := d.DialContext
		if o.tls != nil {
			dial = (&tls.Dialer{NetDialer: d, Config: o.tls.Config()}).DialContext
		}
		c, err := dial(ctx, o.network, addr)
		if err != nil {
			stopLife()
			cancel()
			return nil, err
		}
		if d := o.driver.Load(); d != nil && forCommands {
			d.Reconnected()
		}
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		g := &dialedConn{Conn: c, dialer: o, stop: func() { stop(); stopLife(); cancel() }}
		if forCommands {
			o.commandConns.Store(g, true)
		}
		return g, nil
	}
}

// recordWaiting implements redisscript.Client.RecordWaiting.
func (o *dialer) recordWaiting() (interrupt func()) {
	waiting := map[*dialedConn]uint64{} // the value of reads for each connection
	for key := range o.commandConns.Range {
		g, _ := key.(*dialedConn)
		if n := g.reads.Load(); n%2 == 1 {
			waiting[g] = n
		}
	}
	return func() {
		for g, n := range waiting {
			if g.reads.Load() == n {
				g.interruptedRead.Store(n)
				_ = g.SetReadDeadline(time.Unix(1, 0)) // the next request sets another deadline
			}
		}
	}
}

// dialedConn is a connection. Until the first bytes of the server arrive, it closes when
// the ctx of its dial ends, or when the clients are closed. Otherwise Close would hang
// while rueidis waits for the greeting of a server that hangs.
type dialedConn struct {
	net.Conn
	stop    func()      // called when the server has greeted: the end of a ctx no longer closes the connection
	greeted atomic.Bool // the first bytes have arrived

	dialer          *dialer
	reads           atomic.Uint64 // the number of times that Read began or ended: odd while a call waits
	interruptedRead atomic.Uint64 // the value of reads during the interrupted read
}

func (g *dialedConn) Close() error {
	g.dialer.commandConns.Delete(g)
	return g.Conn.Close()
}

func (g *dialedConn) Read(b []byte) (int, error) {
	read := g.reads.Add(1)
	n, err := g.Conn.Read(b)
	g.reads.Add(1)
	if err != nil && g.interruptedRead.Load() == read {
		// Other requests also waited on this connection. Return a lost connection to
		// them, and not a timeout, so that the driver sends them again.
		err = net.ErrClosed
	}
	if n > 0 && !g.greeted.Load() {
		g.greeted.Store(true)
		g.stop()
	}
	return n, err
}
