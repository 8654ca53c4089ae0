package etcdlock

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/sqlswap"
	"github.com/pawl-go/pawl/internal/ticked"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

func init() { engine.Register(openURL, "etcd", "etcds") }

// lockDriver is the driver of one client for one prefix.
type lockDriver struct {
	*locktable.GroupedDriver
	store *store
}

// New makes a driver over an open client. Closing the driver does not close the client.
// Its error is a [*driver.InvalidError].
func New(client *clientv3.Client, o *Options) (driver.Driver, error) {
	if client == nil {
		return nil, &driver.InvalidError{Argument: "client", Problem: "is nil", Allowed: "an open clientv3.Client"}
	}
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return build(client, options, false, nil), nil
}

// Open opens the cluster that a URL names; the package comment has the forms. Closing the
// driver closes its client. The error is a [*driver.InvalidError] or a [*driver.Error],
// without the password; ctx bounds only the opening.
func Open(ctx context.Context, rawURL string) (driver.Driver, error) {
	return engine.Open(ctx, rawURL, openURL)
}

func openURL(ctx context.Context, u *url.URL) (driver.Driver, error) {
	p, err := parseURL(u)
	if err != nil {
		return nil, err
	}
	timeout := p.config.DialTimeout
	if end, ok := ctx.Deadline(); ok { // leave time for openError
		timeout = min(timeout, time.Until(end)/4*3)
	}
	openCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// clientv3.New takes no ctx, and with a password it sends the server a request.
	client, err := engine.Dial(openCtx, func() (*clientv3.Client, error) { return clientv3.New(p.config) },
		func(c *clientv3.Client) { _ = c.Close() })
	if err != nil {
		return nil, openError(ctx, p, err)
	}
	d := build(client, p.options, true, p.tls)
	if err := d.store.readClock(openCtx); err != nil {
		_ = d.Close()
		return nil, openError(ctx, p, err)
	}
	return d, nil
}

func build(client *clientv3.Client, o Options, ownsClient bool, tls *tlsCredentials) *lockDriver {
	s := &store{
		client: client, ownsClient: ownsClient, tls: tls, prefix: o.Prefix, retention: o.Retention, servers: cmp.Or(o.Location, hosts(client.Endpoints())),
		id: rand.Text(), inboxTried: make(chan struct{}), clockTried: make(chan struct{}), leaseEnds: map[string]locktable.Instant{},
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.tidier = sqlswap.Tidier{Life: s.life, Running: &s.running, Tidy: s.tidy}
	s.clock = ticked.New()
	d := &lockDriver{store: s}
	s.deliver = func(signal driver.Signal) { d.Deliver(signal) }
	d.GroupedDriver = locktable.NewGrouped(swap.New(s, s.id, s.deliver), s.id)
	s.run()
	return d
}

// hosts lists the hosts and ports of endpoints, for errors.
func hosts(endpoints []string) string {
	short := make([]string, len(endpoints))
	for i, e := range endpoints {
		if _, after, ok := strings.Cut(e, "://"); ok {
			e = after
		}
		short[i] = e[strings.LastIndexByte(e, '@')+1:]
	}
	return strings.Join(short, ",")
}

// openError returns the error of an opening that failed. etcd's client waits for servers
// that it cannot reach, and does not report the cause. So openError sends another request
// to find the cause.
func openError(ctx context.Context, p *parsedURL, err error) error {
	s := &store{servers: hosts(p.config.Endpoints), life: context.Background()}
	if timedOut := errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded; timedOut && ctx.Err() == nil {
		if err = p.tls.lastError(); err == nil {
			err = connectionError(ctx, p.config)
		}
	}
	return s.driverError(ctx, err)
}

// connectionError returns the error of a request that does not wait for a connection.
func connectionError(ctx context.Context, config clientv3.Config) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	config.Username, config.Password = "", "" // because with these, clientv3.New waits for a server
	client, err := clientv3.New(config)
	if err != nil {
		return err
	}
	defer closeClient(client)
	_, err = pb.NewKVClient(client.ActiveConnection()).Range(ctx, &pb.RangeRequest{Key: []byte("pawl")}, grpc.WaitForReady(false))
	if status.Code(err) == codes.Unavailable {
		return err
	}
	return status.Error(codes.Unavailable, "no answer") // the client has connected, or the server is silent
}
