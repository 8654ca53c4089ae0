// Package redlock keeps locks in several independent Redis or Valkey servers, a majority
// of which decides. It is quorumlock over redislock. Most programs need only its URL:
//
//	import _ "github.com/pawl-go/pawl/redlock"
//
//	locks, err := pawl.Open(ctx, "redlock://host1,host2,host3", nil)
//
// What it promises, and when a server that lost its data may come back, is in the
// documentation of quorumlock; what it asks of each server, in that of redislock.
//
// # Which URLs are there?
//
//	redlock://[USER:PASSWORD@]HOST[:PORT],HOST[:PORT],HOST[:PORT][/DB]
//	redlocks://...                                                      the same with TLS
//
// There are 3 hosts or more, and an odd number is best. User, password, database and
// parameters are the same for all of them.
//
// # Which parameters do URLs have?
//
// Most URLs have none. These mean what they mean for redislock, for each server:
//
//	addr=HOST:PORT       a further host
//	db=N                 the database, as /N after the hosts
//	client_name=NAME
//	dial_timeout=5s
//	write_timeout=10s
//	protocol=2
//	ca_cert=FILE         with redlocks:
//	server_name=NAME     with redlocks:
//	skip_verify=true     with redlocks:
//	prefix=app:
//	retention=24h
//	push=false
//	wait_replicas=1      of each server, if each has replicas of its own
//	wait_timeout=500ms
//
// # Which servers will do?
//
// They have to be independent: no two of them a master and its replica, or on one
// machine. Two addresses of one server are refused, if the user may call INFO. All
// clients have to name the same servers. A server that is down when the URL is opened, or
// later, is tried again with each step, as long as a majority of them answers. A holder
// whose key somebody deletes hears of it by its next renewal.
package redlock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/quorumlock"
	"github.com/pawl-go/pawl/redislock"
)

const urlForm = "redlock://[USER:PASSWORD@]HOST1[:PORT],HOST2[:PORT],HOST3[:PORT][/DB], redlocks:// for TLS; 3 servers or more that share nothing"

// schemes are ours, and what each node has instead.
var schemes = map[string]string{"redlock": "redis", "redlocks": "rediss"}

func init() { engine.Register(openURL, slices.Collect(maps.Keys(schemes))...) }

// Open opens the servers that a URL names; the package comment has the forms. Closing the
// driver closes what was opened. The error is a [*driver.InvalidError] or, if no majority
// answers, a [*driver.Error], without the password; ctx bounds only the opening.
func Open(ctx context.Context, rawURL string) (*quorumlock.Driver, error) {
	u, err := driver.ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	if schemes[u.Scheme] == "" {
		return nil, invalid("begins with neither redlock: nor redlocks:")
	}
	return openURL(ctx, u)
}

func openURL(ctx context.Context, u *url.URL) (*quorumlock.Driver, error) {
	urls, err := split(u)
	if err != nil {
		return nil, err
	}
	var nodes []driver.Driver
	for _, node := range urls {
		d, err := redislock.Open(ctx, node) // which is lazy, and does not wait
		if err != nil {
			shut(nodes)
			return nil, err
		}
		nodes = append(nodes, lazy{d})
	}
	d, err := quorumlock.New(nodes, nil)
	if err != nil {
		shut(nodes)
		return nil, err
	}
	named := identify(ctx, nodes)
	// Whether a majority is there is known when it has answered something.
	if _, err := d.Inspect(ctx, "pawl open"); err != nil {
		_ = d.Close()
		e, typed := errors.AsType[*driver.Error](err)
		switch {
		case typed:
			e.Op, e.Name = "open", ""
		case errors.Is(err, context.DeadlineExceeded):
			err = unanswered(err, d, nodes)
		}
		return nil, err
	}
	if err := named(); err != nil {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

// identify asks each server who it is. named refuses two addresses of one server, which
// would vote twice. It waits a moment for those that have not answered, and lets those be
// that do not say.
func identify(ctx context.Context, nodes []driver.Driver) (named func() error) {
	type answer struct{ id, where string }
	answers := make(chan answer, len(nodes))
	ctx, cancel := context.WithCancel(ctx)
	for _, node := range nodes {
		go func() {
			d := node.(lazy) //nolint:forcetypeassert // open made them
			answers <- answer{redisscript.RunID(ctx, d.Driver.Driver), strings.TrimPrefix(d.Properties().Where, "redis ")}
		}()
	}
	return func() error {
		defer cancel()
		enough := time.After(250 * time.Millisecond)
		known := map[string]string{}
		for range nodes {
			select {
			case a := <-answers:
				if other := known[a.id]; other != "" && a.id != "" {
					return invalid("names one server twice, which would vote twice: " + min(a.where, other) + " and " + max(a.where, other))
				}
				known[a.id] = a.where
			case <-enough:
				return nil
			}
		}
		return nil
	}
}

// unanswered is the end of a ctx, with who was asked.
func unanswered(ended error, d *quorumlock.Driver, nodes []driver.Driver) error {
	var places []string
	for _, node := range nodes {
		places = append(places, strings.TrimPrefix(node.Properties().Where, "redis "))
	}
	return &driver.Error{
		Backend: d.Properties().Backend, Op: "open", Hint: "check the servers and the network",
		Err: fmt.Errorf("%w: no majority of %s has answered", ended, strings.Join(places, ", ")),
	}
}

// lazy is a node. Its doctor says of each what nobody who uses redlock can change: that
// it is not told of deletions, for it is opened without its server.
type lazy struct{ *redislock.Driver }

// Diagnose implements driver.Diagnoser.
func (l lazy) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	found, err := l.Driver.Diagnose(ctx)
	return slices.DeleteFunc(found, func(f driver.Finding) bool { return f.Subject == "tracking" }), err
}

func shut(nodes []driver.Driver) {
	for _, d := range nodes {
		_ = d.Close()
	}
}

// elsewhere are parameters of redislock for what is no single server, or is decided here.
var elsewhere = []string{"cluster", "lazy", "master_name", "master_set", "sentinel_password", "sentinel_username", "tracking"}

// split makes a URL for each node. What is wrong with all of them, redislock says.
func split(u *url.URL) ([]string, error) {
	if u.Opaque != "" || u.Fragment != "" {
		return nil, invalid("has no // after the scheme, or a # in it")
	}
	ours := slices.DeleteFunc(redislock.URLParameters(), func(name string) bool { return slices.Contains(elsewhere, name) })
	query, err := driver.URLParameters(u, "redlock URL", ours, "addr")
	if err != nil {
		return nil, err
	}
	hosts := append(strings.Split(u.Host, ","), query["addr"]...)
	query.Del("addr")
	query.Set("lazy", "true")
	var urls, known []string
	for _, host := range hosts {
		at := address(host)
		switch {
		case strings.HasPrefix(at, ":"):
			return nil, invalid("names a host that is empty")
		case slices.Contains(known, at):
			return nil, invalid("names " + at + " twice, which would vote twice")
		}
		known = append(known, at)
		node := url.URL{Scheme: schemes[u.Scheme], User: u.User, Host: at, Path: u.Path, RawQuery: query.Encode()}
		urls = append(urls, node.String())
	}
	if len(urls) < 3 {
		return nil, invalid("names fewer than 3 hosts, and could not lose one")
	}
	return urls, nil
}

// address is host:port, as it can be compared.
func address(hostport string) string {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		host, port = strings.Trim(hostport, "[]"), ""
	}
	if port == "" {
		port = "6379"
	}
	return net.JoinHostPort(strings.ToLower(host), port)
}

func invalid(problem string) error {
	return &driver.InvalidError{What: "redlock URL", Problem: problem, Allowed: urlForm}
}
