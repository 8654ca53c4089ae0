package redislock

import (
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redisscript"
)

// Options for a driver. The zero value, and nil, are fine.
type Options struct {
	// Prefix begins all keys and channels. Clients that shall exclude each other have the same one; it must not
	// contain braces. Default: "pawl:".
	Prefix string

	// Retention is how long the last fence of a name is remembered after its last grant, at the least. When it is
	// forgotten, the next fence is greater all the same, unless the server's clock was set back past that grant.
	// Default: 24 hours; 1 minute to 30 days.
	Retention time.Duration

	// NoPush is for servers, proxies and users that cannot subscribe: waiters then ask now and then. Default:
	// false; where subscribing fails the driver goes on without.
	NoPush bool

	// Where is how errors name the server. Default: the addresses, for what was opened by [Open]; "of the caller" for
	// a client that was handed over.
	Where string
}

// Driver is a client of Redis. It implements driver.Driver, driver.Signaler, driver.Lister, driver.Breaker and
// driver.Doctor.
type Driver struct {
	*redisscript.Driver
}

// New makes a driver over a client that is open, and stays so when the driver is closed. Its error is a
// [*driver.InvalidError].
func New(client rueidis.Client, o *Options) (*Driver, error) {
	if client == nil {
		return nil, &driver.InvalidError{What: "client", Problem: "is nil", Allowed: "an open rueidis.Client"}
	}
	return build(&sender{client: client}, o, nil)
}

func build(s *sender, o *Options, track *tracker) (*Driver, error) {
	own := Options{}
	if o != nil {
		own = *o
	}
	if s.where == "" {
		s.where = own.Where
	}
	if s.where == "" {
		s.where = "of the caller"
	}
	options := redisscript.Options{Prefix: own.Prefix, Retention: own.Retention, Push: !own.NoPush, Watch: track != nil}
	if err := options.Validate(); err != nil {
		return nil, err
	}
	d := &Driver{redisscript.New(s, options)}
	track.tell(d.Driver)
	return d, nil
}
