package etcdlock

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
)

// MinTTL is the shortest TTL of a lease. An election takes as long.
const MinTTL = time.Second

// Options for a driver. The zero value, and nil, are fine.
type Options struct {
	// Prefix begins all keys, and two slashes follow it. Clients that shall exclude each
	// other have the same one. It has no two slashes in a row, and none at its end.
	// Default: "pawl"; 256 bytes at most.
	Prefix string

	// Retention is how long the last fence of a name is remembered after its last grant,
	// at the least. Default: 24 hours; 1 minute to 30 days.
	Retention time.Duration

	// Where is how errors name the cluster. Default: its endpoints.
	Where string
}

// Driver is a client of etcd. It implements driver.Driver, driver.Signaler,
// driver.Lister, driver.LeaseBreaker, driver.FenceRaiser and driver.Diagnoser.
type Driver struct {
	*locktable.Driver
	store *store
}

// New makes a driver over a client that is open, and stays so when the driver is closed.
// Its error is a [*driver.InvalidError].
func New(client *clientv3.Client, o *Options) (*Driver, error) {
	if client == nil {
		return nil, &driver.InvalidError{What: "client", Problem: "is nil", Allowed: "an open clientv3.Client"}
	}
	return build(client, o, false)
}

func build(client *clientv3.Client, o *Options, own bool) (*Driver, error) {
	options, err := o.complete()
	if err != nil {
		return nil, err
	}
	s := &store{client: client, own: own, prefix: options.Prefix, forget: options.Retention, where: options.Where, follows: make(chan struct{})}
	if s.where == "" {
		s.where = hosts(client.Endpoints())
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.clock = newClock(s.life)
	id := rand.Text()
	d := &Driver{store: s}
	deliver := func(signal driver.Signal) { d.Deliver(signal) }
	d.Driver = locktable.New(optimistic.New(s, id, deliver), id)
	s.mail = &mail{store: s, id: id, deliver: deliver, first: make(chan struct{})}
	s.mail.run()
	return d, nil
}

// hosts are endpoints as errors name them.
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

const defaultPrefix = "pawl"

// complete checks options and fills in what is left out.
func (o *Options) complete() (Options, error) {
	own := Options{}
	if o != nil {
		own = *o
	}
	if own.Prefix == "" {
		own.Prefix = defaultPrefix
	}
	if own.Retention == 0 {
		own.Retention = 24 * time.Hour
	}
	if len(own.Prefix) > 256 || strings.Contains(own.Prefix, "//") || strings.HasSuffix(own.Prefix, "/") {
		return own, &driver.InvalidError{
			What: "prefix", Problem: "is " + strconv.Quote(own.Prefix),
			Allowed: "256 bytes, without two slashes in a row and without one at its end",
		}
	}
	if own.Retention < time.Minute || own.Retention > 30*24*time.Hour {
		return own, &driver.InvalidError{What: "retention", Problem: "is " + own.Retention.String(), Allowed: "1m to 720h"}
	}
	return own, nil
}
