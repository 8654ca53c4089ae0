package redislock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/redisscript"
)

func init() { engine.Register(openURL, "redis", "rediss", "redis+unix", "valkey", "valkeys") }

// New makes a driver over an open client. Closing the driver does not close the client.
// Its error is a [*driver.InvalidError].
func New(client rueidis.Client, o *Options) (driver.Driver, error) {
	if engine.IsNil(client) {
		return nil, &driver.InvalidError{Argument: "client", Problem: "is nil", Allowed: "an open rueidis.Client"}
	}
	given := *cmp.Or(o, &Options{})
	options, err := given.scriptOptions()
	if err != nil {
		return nil, err
	}
	s := &conn{client: client, push: client, location: cmp.Or(given.Location, "of the caller"), untrackedReason: "the client was not prepared by Track"}
	return build(s, redisscript.Client{}, options, given.Tracking), nil
}

// build makes the driver. A nil Tracking means none.
func build(s *conn, c redisscript.Client, o redisscript.Options, t *Tracking) *redisscript.Driver {
	c.Conn, c.Location, c.Cluster, c.Nodes, c.UntrackedReason = s, s.location, s.cluster(), s.nodes, s.untrackedReason
	if t == nil {
		return redisscript.New(&c, o)
	}
	c.Watch = s.watch
	d := redisscript.New(&c, o)
	t.driver.Store(d)
	return d
}

// scriptOptions returns the options with their defaults, or an error if they are invalid.
func (o *Options) scriptOptions() (redisscript.Options, error) {
	r := redisscript.Options{
		Prefix: o.Prefix, Retention: o.Retention, NoPush: o.NoPush, WaitReplicas: o.WaitReplicas, WaitTimeout: o.WaitTimeout,
	}
	err := r.Validate()
	return r, err
}

// Open opens the server, the cluster, or the Sentinels' master that a URL names; the
// package comment has the forms. Closing the driver closes its connections. The error is
// a [*driver.InvalidError] or a [*driver.Error], without the password; ctx bounds only
// the opening.
func Open(ctx context.Context, rawURL string) (driver.Driver, error) {
	return engine.Open(ctx, rawURL, openURL)
}

func openURL(ctx context.Context, u *url.URL) (driver.Driver, error) {
	p, err := parseURL(u)
	if err != nil {
		return nil, err
	}
	if p.connectLater = redisscript.ConnectsLater(ctx); p.connectLater {
		p.untrackedReason = "the driver was opened without a connection"
	}
	options, err := p.options.scriptOptions()
	if err != nil {
		return nil, err // here, before waiting for the server
	}
	track, connDialer := &Tracking{}, &dialer{network: p.network, tls: p.tls}
	// rueidis takes no ctx.
	s, err := engine.Dial(ctx, func() (*conn, error) { return connect(p, track, connDialer) }, (*conn).close)
	if err != nil {
		switch ended := ctx.Err(); {
		case errors.Is(ended, context.Canceled):
			return nil, ended
		case ended != nil && !errors.Is(err, ended):
			err = fmt.Errorf("%w (%w)", ended, err)
		}
		return nil, redisscript.DriverError("redis "+p.location, "open", "", err)
	}
	if s.untrackedReason != "" {
		track = nil
	}
	scriptClient := redisscript.Client{Close: s.close}
	scriptClient.Password = p.client.Password != "" && (p.client.Username == "" || p.client.Username == "default")
	scriptClient.Sentinels, scriptClient.MasterSet = sentinels(&p.client)
	if scriptClient.Sentinels == nil && !s.cluster() { // all connections for commands go to one server
		scriptClient.RecordWaiting = connDialer.recordWaiting
	}
	d := build(s, scriptClient, options, track)
	connDialer.driver.Store(d)
	return d, nil
}

// connect opens both clients, the second one with tracking if the server allows it.
//
// With connectLater, rueidis connects with the first command, and retries with each
// command until it succeeds. With ForceSingleClient, NewClient returns a client even if
// it cannot connect, so each dial fails until both clients exist. There is no tracking,
// because only a connected server shows whether it supports that.
func connect(p *parsedURL, t *Tracking, connDialer *dialer) (_ *conn, err error) {
	s := &conn{location: p.location, untrackedReason: p.untrackedReason}
	connDialer.life, s.end = context.WithCancel(context.Background())
	if p.connectLater {
		p.client.ForceSingleClient = true
		connDialer.isRefusing.Store(true)
		defer connDialer.isRefusing.Store(false)
	}
	option := p.client
	option.DialCtxFn, p.client.DialCtxFn = connDialer.dial(false), connDialer.dial(true)
	if s.client, err = rueidis.NewClient(p.client); err != nil && !errors.Is(err, errNotConnected) {
		s.end()
		return nil, err
	}
	if s.untrackedReason == "" {
		withTracking(&option, t)
		// rueidis (v1.0.79) starts the timer of its pings before the goroutine that
		// reads. If the timer fires before that goroutine has started, two goroutines
		// read, and rueidis panics. So the interval is long.
		option.Dialer.KeepAlive = 5 * time.Second
		if s.push, err = rueidis.NewClient(option); err != nil && refusesTracking(err) {
			text, _, _ := strings.Cut(err.Error(), "\n") // the other lines are rueidis' advice for its callers
			s.untrackedReason = "it refuses tracking: " + text
		}
	}
	if s.untrackedReason != "" {
		option.ClientTrackingOptions, option.OnInvalidations, option.DisableCache = nil, nil, true
		option.Dialer.KeepAlive = p.client.Dialer.KeepAlive
		s.push, err = rueidis.NewClient(option)
	}
	if err != nil && !errors.Is(err, errNotConnected) {
		s.close()
		return nil, err
	}
	return s, nil
}

var errNotConnected = errors.New("not connected yet")

// settings returns the options of a client that the driver opens. Buffers are small,
// because half a megabyte for each direction of each connection is too much for locks.
// rueidis never repeats a command that writes. With DisableRetry it does not repeat a
// read either, because the client above the driver decides that.
func settings() rueidis.ClientOption {
	o := rueidis.ClientOption{
		ClientName:          "pawl",
		ClientSetInfo:       rueidis.DisableClientSetInfo,
		ReadBufferEachConn:  64 << 10,
		WriteBufferEachConn: 64 << 10,
		CacheSizeEachConn:   1 << 10,
		ConnWriteTimeout:    5 * time.Second,
		PipelineMultiplex:   -1, // one connection: the server tracks keys per connection
		BlockingPoolSize:    4,  // for steps that share a script, and WAIT
		DisableRetry:        true,
		DisableCache:        true,
	}
	o.Dialer.Timeout = 5 * time.Second
	o.Dialer.KeepAlive = time.Second
	// While a slot moves, two nodes redirect a client to each other, if it lacks the
	// right to ASKING. This limit ends that.
	o.ClusterOption.MaxMovedRedirections = 16
	// A client may miss the Sentinels' message about a new master. Without this refresh,
	// it would keep using the old one.
	o.Sentinel.TopologyRefreshInterval = 5 * time.Second
	return o
}

func invalid(problem string) error {
	return &driver.InvalidError{Argument: "redis URL", Problem: problem, Allowed: urlForm}
}
