package natslock

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

func init() { engine.Register(openURL, "nats", "nats+tls") }

type lockDriver struct {
	*locktable.Driver
	store *store
}

// New makes a driver over an open connection. Closing the driver does not close the
// connection. The driver looks for the bucket on first use. The error is a
// [*driver.InvalidError].
func New(nc *nats.Conn, o *Options) (driver.Driver, error) {
	if nc == nil {
		return nil, invalid("connection", "is nil", "an open *nats.Conn")
	}
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return build(nc, options, false), nil
}

// Open connects to the servers that a URL names, and creates the bucket if it is missing;
// the package comment has the forms. Closing the driver closes the connection. The error
// is a [*driver.InvalidError] or a [*driver.Error], without the password; ctx bounds only
// the opening.
func Open(ctx context.Context, rawURL string) (driver.Driver, error) {
	return engine.Open(ctx, rawURL, openURL)
}

func openURL(ctx context.Context, u *url.URL) (driver.Driver, error) {
	p, err := parseURL(u)
	if err != nil {
		return nil, err
	}
	nc, err := connect(ctx, p)
	if err != nil {
		return nil, (&store{options: p.driverOptions}).driverError(err)
	}
	d := build(nc, p.driverOptions, true)
	if err := d.store.ready(ctx); err != nil {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

func build(nc *nats.Conn, o Options, ownsConn bool) *lockDriver {
	s := &store{nc: nc, ownsConn: ownsConn, options: o, stream: "KV_" + o.Bucket, prefix: "$KV." + o.Bucket + "."}
	s.putPrefix = s.prefix
	if o.Domain != "" { // without it, subjects lead to the connection's own domain
		s.putPrefix = s.apiSubject(s.prefix)
	}
	s.bucket.findLock = make(chan struct{}, 1)
	s.life, s.end = context.WithCancel(context.Background())
	inbox := nc.NewInbox() + "." + rand.Text()[:4]
	d := &lockDriver{store: s}
	t := swap.New(s, inbox, func(signal driver.Signal) { d.Deliver(signal) })
	d.Driver = locktable.New(t, inbox)
	s.listen(inbox, t, d.Driver)
	return d
}

// settings returns the options of a connection that the driver opens. Requests without a
// connection fail at once, because the client above the driver decides when to repeat
// them. nats.go closes a silent connection after 6 s.
func settings() []nats.Option {
	return []nats.Option{
		nats.Name("pawl"),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond),
		nats.ReconnectBufSize(-1),
		nats.PingInterval(2 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.FlusherTimeout(2 * time.Second), // otherwise closing a connection that hangs takes longer
		nats.IgnoreAuthErrorAbort(),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // otherwise nats.go prints errors
	}
}

// connectTries is the number of times that the driver tries to connect while no server
// answers in time. Each time, nats.go waits 2 s; a busy server may need longer.
const connectTries = 3

// connect connects, or returns when ctx ends, because nats.go takes no ctx.
func connect(ctx context.Context, p *parsedURL) (*nats.Conn, error) {
	return engine.Dial(ctx, func() (nc *nats.Conn, err error) {
		for range connectTries {
			nc, err = nats.Connect(strings.Join(p.servers, ","), append(settings(), p.options...)...)
			if !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, nats.ErrTimeout) || ctx.Err() != nil {
				break
			}
		}
		return nc, err
	}, (*nats.Conn).Close)
}
