package redislock

import (
	"context"
	"net/url"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redisscript"
)

func init() {
	for _, scheme := range []string{"redis", "rediss", "redis+unix", "valkey", "valkeys"} {
		driver.Register(scheme, func(ctx context.Context, u *url.URL) (driver.Driver, error) {
			d, err := open(ctx, u)
			if err != nil {
				return nil, err // not d: a nil *Driver would be no nil driver.Driver
			}
			return d, nil
		})
	}
}

// Open opens the server, the cluster, or the Sentinels' master that a URL names; the package comment has the forms.
// Closing the driver closes what was opened. The error is a [*driver.InvalidError] or a [*driver.Error], without
// the password; ctx bounds only the opening.
func Open(ctx context.Context, rawURL string) (*Driver, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, invalid("cannot be parsed")
	}
	return open(ctx, u)
}

func open(ctx context.Context, u *url.URL) (*Driver, error) {
	p, err := parseURL(u)
	if err != nil {
		return nil, err
	}
	track := &tracker{}
	client, tracking, err := dial(ctx, &p.client, p.track, track)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, redisscript.Trouble("redis "+p.where, "open", "", err)
	}
	if !tracking || client.Mode() == rueidis.ClientModeCluster { // there, what is about the connection has no node to go to
		track = nil
	}
	d, err := build(&sender{client: client, where: p.where, close: client.Close}, &p.own, track)
	if err != nil {
		client.Close()
		return nil, err
	}
	return d, nil
}

// dial connects, with client tracking if that is to be had, and says whether it is.
//
// rueidis connects without a ctx, so it goes on in the background when ctx ends first, and what it brings is closed.
func dial(ctx context.Context, o *rueidis.ClientOption, track bool, t *tracker) (rueidis.Client, bool, error) {
	type opened struct {
		client   rueidis.Client
		tracking bool
		err      error
	}
	done := make(chan opened, 1)
	go func() {
		var r opened
		for _, how := range trackings {
			if how != nil && !track {
				continue
			}
			option := *o
			withTracking(&option, how, t)
			r.client, r.err = rueidis.NewClient(option)
			r.tracking = how != nil
			if r.err == nil || !refusesTracking(r.err) {
				break
			}
		}
		done <- r
	}()
	select {
	case r := <-done:
		return r.client, r.tracking, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				r.client.Close()
			}
		}()
		return nil, false, ctx.Err()
	}
}

// The settings of a client that is opened for a driver. A lock is a few bytes, so half a megabyte of buffers for each
// direction of each connection is too much. Commands that change something are never sent twice by rueidis; with
// DisableRetry reads are not either, for the client over the driver does that, and knows when to give up.
func settings() rueidis.ClientOption {
	o := rueidis.ClientOption{
		ClientName:          "pawl",
		ClientSetInfo:       rueidis.DisableClientSetInfo,
		ReadBufferEachConn:  64 << 10,
		WriteBufferEachConn: 64 << 10,
		CacheSizeEachConn:   1 << 10,
		ConnWriteTimeout:    5 * time.Second,
		PipelineMultiplex:   -1, // one connection: what is tracked on one is not known to the others
		BlockingPoolSize:    2,
		DisableRetry:        true,
		DisableCache:        true,
	}
	o.Dialer.Timeout = 5 * time.Second
	o.Dialer.KeepAlive = time.Second
	// Without it a client that missed one message of the Sentinels stays with a master that is none any more.
	o.Sentinel.TopologyRefreshInterval = 5 * time.Second
	return o
}

func invalid(problem string) error {
	return &driver.InvalidError{What: "redis URL", Problem: problem, Allowed: urlForm}
}
