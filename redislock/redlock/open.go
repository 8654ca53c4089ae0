package redlock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/quorumlock"
	"github.com/pawl-go/pawl/redislock"
)

func init() { engine.Register(openURL, slices.Collect(maps.Keys(schemes))...) }

// Open opens the servers that a URL names; the package comment has the forms. Closing the
// driver closes its connections. The error is a [*driver.InvalidError] or, if no majority
// answers, a [*driver.Error], without the password. ctx bounds only the opening.
func Open(ctx context.Context, rawURL string) (driver.Driver, error) {
	return engine.Open(ctx, rawURL, openURL)
}

func openURL(ctx context.Context, u *url.URL) (driver.Driver, error) {
	urls, err := nodeURLs(u)
	if err != nil {
		return nil, err
	}
	d, nodes, err := newQuorum(urls, func(node string) (driver.Driver, error) { return redislock.Open(redisscript.ConnectLater(ctx), node) })
	if err != nil {
		return nil, err
	}
	checkDistinct := identify(ctx, nodes)
	// Only a request shows whether a majority of the servers answers.
	if _, err := d.Inspect(ctx, "pawl open"); err != nil {
		_ = d.Close()
		if _, isDriverError := errors.AsType[*driver.Error](err); !isDriverError && errors.Is(err, context.DeadlineExceeded) {
			err = noMajorityErr(err, d, nodes)
		}
		return nil, err
	}
	if err := checkDistinct(); err != nil {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

// New makes a driver over 3 or more clients of your own, one for each server. An odd
// number is best. Closing the driver does not close the clients. For other options than
// the defaults of redislock, use quorumlock.New. The error is a [*driver.InvalidError].
func New(clients ...rueidis.Client) (driver.Driver, error) {
	if len(clients) < 3 {
		return nil, &driver.InvalidError{Argument: "quorum", Problem: "has fewer than 3 clients, so it could not lose one", Allowed: "3 or more, 3 or 5 in most cases"}
	}
	var known []rueidis.Client
	d, _, err := newQuorum(clients, func(c rueidis.Client) (driver.Driver, error) {
		if slices.Contains(known, c) {
			return nil, &driver.InvalidError{Argument: "quorum", Problem: "has one client twice, which would vote twice", Allowed: "a client for each server"}
		}
		known = append(known, c)
		return redislock.New(c, nil)
	})
	return d, err
}

// newQuorum makes a driver over a node for each server.
func newQuorum[S any](servers []S, open func(S) (driver.Driver, error)) (_ driver.Driver, nodes []driver.Driver, err error) {
	defer func() {
		if err != nil {
			for _, d := range nodes {
				_ = d.Close()
			}
		}
	}()
	for _, s := range servers {
		d, err := open(s)
		if err != nil {
			return nil, nodes, err
		}
		nodes = append(nodes, node{d.(*redisscript.Driver)}) //nolint:forcetypeassert // redislock made it
	}
	d, err := quorumlock.New(nodes, nil)
	return d, nodes, err
}

// A node is the driver of one server. Its Diagnose drops a finding that a user of redlock
// cannot change: a driver that is opened without its server has no tracking.
type node struct{ *redisscript.Driver }

// Diagnose implements driver.Diagnoser.
func (n node) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	found, err := n.Driver.Diagnose(ctx)
	return slices.DeleteFunc(found, func(f driver.Finding) bool { return f.Subject == "tracking" }), err
}

// identify asks each server for its run ID. It returns a function that waits a moment for
// the answers, and returns an error if two addresses lead to one server, which would vote
// twice. Servers that do not reveal their ID are accepted.
func identify(ctx context.Context, nodes []driver.Driver) (checkDistinct func() error) {
	type answer struct{ id, location string }
	answers := make(chan answer, len(nodes))
	ctx, cancel := context.WithCancel(ctx)
	for _, n := range nodes {
		go func() {
			d := n.(node) //nolint:forcetypeassert // newQuorum made them
			answers <- answer{redisscript.RunID(ctx, d.Driver), strings.TrimPrefix(d.Properties().Location, "redis ")}
		}()
	}
	return func() error {
		defer cancel()
		timeout := time.After(250 * time.Millisecond)
		known := map[string]string{}
		for range nodes {
			select {
			case a := <-answers:
				if other := known[a.id]; other != "" && a.id != "" {
					return invalid("names one server twice, which would vote twice: " + min(a.location, other) + " and " + max(a.location, other))
				}
				known[a.id] = a.location
			case <-timeout:
				return nil
			}
		}
		return nil
	}
}

// noMajorityErr returns the error for a ctx that ended before a majority answered, with a
// list of the servers.
func noMajorityErr(ended error, d driver.Driver, nodes []driver.Driver) error {
	var locations []string
	for _, node := range nodes {
		locations = append(locations, strings.TrimPrefix(node.Properties().Location, "redis "))
	}
	return &driver.Error{
		Backend: d.Properties().Backend, Op: "open", Hint: "check the servers and the network",
		Err: fmt.Errorf("%w: no majority of %s has answered", ended, strings.Join(locations, ", ")),
	}
}
