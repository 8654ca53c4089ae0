package etcdlock

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
)

func init() { engine.Register(openURL, "etcd", "etcds") }

// lockDriver is the driver of one client for one prefix.
type lockDriver struct {
	*locktable.Driver
	store *store
}

// New makes a driver over an open client, which stays open when the driver is closed. Its
// error is a [*driver.InvalidError].
func New(client *clientv3.Client, o *Options) (driver.Driver, error) {
	if client == nil {
		return nil, &driver.InvalidError{What: "client", Problem: "is nil", Allowed: "an open clientv3.Client"}
	}
	return engine.Made(build(client, o, false, nil))
}

// Open opens the cluster that a URL names; the package comment has the forms. Closing the
// driver closes what was opened. The error is a [*driver.InvalidError] or a
// [*driver.Error], without the password; ctx bounds only the opening.
func Open(ctx context.Context, rawURL string) (driver.Driver, error) {
	return engine.Open(ctx, rawURL, openURL)
}

func openURL(ctx context.Context, u *url.URL) (driver.Driver, error) {
	p, err := parseURL(u)
	if err != nil {
		return nil, err
	}
	config := &p.config
	within, cancel := context.WithTimeout(ctx, openTimeout(ctx, config))
	defer cancel()
	client, err := dial(within, config)
	if err != nil {
		return nil, openError(ctx, config, err)
	}
	d, err := build(client, &p.own, true, p.tls)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	if err := d.store.readClock(within); err != nil {
		_ = d.Close()
		return nil, openError(ctx, config, err)
	}
	return d, nil
}

func build(client *clientv3.Client, o *Options, own bool, tls *handshakes) (*lockDriver, error) {
	options, err := o.complete()
	if err != nil {
		return nil, err
	}
	s := &store{client: client, own: own, tls: tls, prefix: options.Prefix, forget: options.Retention, where: options.Where, follows: make(chan struct{})}
	s.where = cmp.Or(s.where, hosts(client.Endpoints()))
	s.life, s.end = context.WithCancel(context.Background())
	s.clock = newClock()
	id := rand.Text()
	d := &lockDriver{store: s}
	deliver := func(signal driver.Signal) { d.Deliver(signal) }
	d.Driver = locktable.New(optimistic.New(s, id, deliver), id)
	s.inbox = &inbox{store: s, id: id, deliver: deliver, first: make(chan struct{})}
	s.inbox.run()
	return d, nil
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

// openTimeout returns the time in which the cluster has to answer. It leaves time to find
// out why the cluster does not answer.
func openTimeout(ctx context.Context, config *clientv3.Config) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return min(config.DialTimeout, time.Until(end)/4*3)
	}
	return config.DialTimeout
}

// openError returns the error of an opening that failed. etcd's client waits for servers
// that it cannot reach, and does not report the cause. So openError looks for the cause.
func openError(ctx context.Context, config *clientv3.Config, err error) error {
	s := &store{where: hosts(config.Endpoints), life: context.Background()}
	if late := errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded; late && ctx.Err() == nil {
		err = whyNot(ctx, config)
	}
	err = s.failed(ctx, err)
	if e, ok := err.(*driver.Error); ok { //nolint:errorlint // it was made just now
		e.Op = "open"
	}
	return err
}

// whyNot returns the error of a request that does not wait for a connection.
func whyNot(ctx context.Context, config *clientv3.Config) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if config.TLS != nil {
		for _, endpoint := range config.Endpoints {
			if err := shakeHands(ctx, config.TLS, endpoint); err != nil {
				return status.Error(codes.Unavailable, err.Error())
			}
		}
	}
	anybody := *config
	anybody.Username, anybody.Password = "", "" // with these, clientv3.New would wait for a server
	client, err := clientv3.New(anybody)
	if err != nil {
		return err
	}
	defer closeClient(client)
	_, err = pb.NewKVClient(client.ActiveConnection()).Range(ctx, &pb.RangeRequest{Key: []byte("pawl")}, grpc.WaitForReady(false))
	switch status.Code(err) {
	case codes.Unavailable:
		return err
	default: // the client is connected by now, or the server does not answer
		return status.Error(codes.Unavailable, "no answer")
	}
}

// shakeHands returns the error of a TLS handshake with a server. A server that refuses
// the certificate reports this after the handshake, and a client that writes then may not
// read the report. So shakeHands only reads.
func shakeHands(ctx context.Context, config *tls.Config, endpoint string) error {
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", hosts([]string{endpoint}))
	if errors.Is(err, io.EOF) {
		return errors.New("the server hung up at the TLS handshake")
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(time.Second / 4))
	if _, err = conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// dial makes the client, and returns when ctx ends. clientv3.New takes no ctx, and with a
// password it sends the server a request.
func dial(ctx context.Context, config *clientv3.Config) (*clientv3.Client, error) {
	return engine.Dial(ctx, func() (*clientv3.Client, error) { return clientv3.New(*config) },
		func(c *clientv3.Client) { _ = c.Close() })
}
