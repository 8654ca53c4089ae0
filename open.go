package pawl

import (
	"context"

	"github.com/pawl-go/pawl/driver"
)

// Open makes a client over the backend that a URL names, whose package must be imported for it:
//
//	import _ "github.com/pawl-go/pawl/sqlitelock" // sqlite:/var/lib/app/locks.db
//	import _ "github.com/pawl-go/pawl/redislock"  // redis://host:6379, and what package redislock lists
//	import _ "github.com/pawl-go/pawl/redlock"    // redlock://host1,host2,host3
//	import _ "github.com/pawl-go/pawl/memlock"    // mem:
//
// ctx bounds the opening only. Options may be nil. The error Is ErrInvalid for a URL or option that cannot
// be, and ErrUnavailable when the backend cannot be reached. It never shows a password.
func Open(ctx context.Context, url string, o *Options) (*Client, error) {
	if ctx == nil {
		return nil, &InvalidError{What: "ctx", Problem: "is nil", Allowed: "a context"}
	}
	s, err := o.settle()
	if err != nil {
		return nil, err
	}
	d, err := driver.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	return start(d, s, newClock().now), nil
}
