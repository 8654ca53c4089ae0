package pawl

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/clock"
)

// Open returns a client over the backend that a URL names. The program must import the
// backend's package:
//
//	import _ "github.com/pawl-go/pawl/sqlitelock"        // sqlite:/var/lib/app/locks.db
//	import _ "github.com/pawl-go/pawl/redislock"         // redis://host:6379; package redislock lists more
//	import _ "github.com/pawl-go/pawl/redislock/redlock" // redlock://host1,host2,host3
//	import _ "github.com/pawl-go/pawl/memlock"           // mem:
//
// A program may start before its backend. While the backend cannot be reached, Open tries
// again: for Options.RetryFor, 10 s by default, or until ctx ends. ctx bounds the opening
// only. o may be nil. The error matches ErrInvalid for a bad URL or option, and
// ErrUnavailable if the backend cannot be reached. The error never contains a password.
func Open(ctx context.Context, url string, o *Options) (*Client, error) {
	return openWith(ctx, func() (driver.Driver, error) { return driver.Open(ctx, url) }, o)
}

func openWith(ctx context.Context, open func() (driver.Driver, error), o *Options) (*Client, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	s, err := o.toSettings()
	if err != nil {
		return nil, err
	}
	d, err := s.retryOpen(ctx, open)
	switch {
	case err == nil:
	case isEndOf(ctx, err):
		return nil, err
	default:
		return nil, withoutCtxMatch(err)
	}
	if err := s.checkTTLs(d.Properties()); err != nil {
		_ = d.Close() // nothing is held
		return nil, err
	}
	return start(d, s, clock.New().Now), nil
}

// retryOpen opens a driver, and tries again as a waiting claim does.
func (s *settings) retryOpen(ctx context.Context, open func() (driver.Driver, error)) (driver.Driver, error) {
	began := time.Now()
	for fails := 1; ; fails++ {
		d, err := open()
		if err == nil || !errors.Is(err, ErrUnavailable) || isPermanent(err) || time.Since(began) >= s.RetryFor {
			return d, err
		}
		pause := backoff.JitterDown(backoff.Doubled(10*time.Millisecond, fails, time.Second))
		if ended := backoff.Wait(ctx, pause); errors.Is(ended, context.Canceled) {
			return nil, ended
		} else if ended != nil {
			return nil, err // err says why the backend could not be reached
		}
	}
}
