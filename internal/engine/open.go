package engine

import (
	"context"
	"net/url"

	"github.com/pawl-go/pawl/driver"
)

// Register makes [driver.Open] open URLs of these schemes with open.
func Register[D driver.Driver](open func(context.Context, *url.URL) (D, error), schemes ...string) {
	for _, scheme := range schemes {
		driver.Register(scheme, func(ctx context.Context, u *url.URL) (driver.Driver, error) {
			d, err := open(ctx, u)
			if err != nil {
				return nil, err // not d: a D that is a nil pointer is not a nil driver.Driver
			}
			return d, nil
		})
	}
}

// Open parses a URL and opens it with open.
func Open[D any](ctx context.Context, rawURL string, open func(context.Context, *url.URL) (D, error)) (D, error) {
	u, err := driver.ParseURL(rawURL)
	if err != nil {
		var none D
		return none, err
	}
	return open(ctx, u)
}

// Dial bounds a dial that takes no ctx. If ctx ends first, the dial goes on in the
// background, and discard closes the client that it brings.
func Dial[C any](ctx context.Context, dial func() (C, error), discard func(C)) (C, error) {
	type result struct {
		client C
		err    error
	}
	done := make(chan result, 1)
	go func() {
		client, err := dial()
		done <- result{client, err}
	}()
	select {
	case r := <-done:
		return r.client, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				discard(r.client)
			}
		}()
		var none C
		return none, ctx.Err()
	}
}
