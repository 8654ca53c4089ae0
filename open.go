package pawl

import (
	"context"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/clock"
)

// Open returns a client over the backend that a URL names. Import the backend's package
// for it:
//
//	import _ "github.com/pawl-go/pawl/sqlitelock"        // sqlite:/var/lib/app/locks.db
//	import _ "github.com/pawl-go/pawl/redislock"         // redis://host:6379; package redislock lists more
//	import _ "github.com/pawl-go/pawl/redislock/redlock" // redlock://host1,host2,host3
//	import _ "github.com/pawl-go/pawl/memlock"           // mem:
//
// ctx bounds the opening only. o may be nil. The error matches ErrInvalid for a bad URL
// or option, and ErrUnavailable if the backend cannot be reached. It never contains a
// password.
func Open(ctx context.Context, url string, o *Options) (*Client, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	s, err := o.settle()
	if err != nil {
		return nil, err
	}
	d, err := driver.Open(ctx, url)
	switch {
	case err == nil:
	case endedBy(ctx, err):
		return nil, err
	default:
		return nil, notOfTheCaller(err)
	}
	if err := s.fits(d.Properties()); err != nil {
		_ = d.Close() // nothing is held
		return nil, err
	}
	return start(d, s, clock.New().Now), nil
}
