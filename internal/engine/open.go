package engine

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/driver"
)

// Register makes [driver.Open] open URLs of these schemes with open.
func Register(open driver.Opener, schemes ...string) {
	for _, scheme := range schemes {
		driver.Register(scheme, func(ctx context.Context, u *url.URL) (driver.Driver, error) { return openURL(ctx, u, open) })
	}
}

// openURL opens a URL with open, and puts the operation into its error.
func openURL(ctx context.Context, u *url.URL, open driver.Opener) (driver.Driver, error) {
	d, err := open(ctx, u)
	if e, ok := errors.AsType[*driver.Error](err); ok {
		e.Op, e.Name = driver.OpOpen, ""
	}
	return d, err
}

// Address completes HOST or HOST:PORT of a URL. Without a host, it uses localhost. ok
// reports whether the port is a valid number.
func Address(hostport, defaultPort string) (address string, ok bool) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		host, port = strings.Trim(hostport, "[]"), ""
	}
	port = cmp.Or(port, defaultPort)
	n, err := strconv.Atoi(port)
	return net.JoinHostPort(cmp.Or(host, "localhost"), port), err == nil && 0 < n && n < 1<<16
}

// Open parses a URL and opens it with open.
func Open(ctx context.Context, rawURL string, open driver.Opener) (driver.Driver, error) {
	if err := CheckContext(ctx); err != nil {
		return nil, err
	}
	u, err := driver.ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return openURL(ctx, u, open)
}

// DriverOrError converts the results of a backend's constructor to results of Open. After
// an error it returns a nil interface, and not an interface with a nil pointer.
func DriverOrError[D driver.Driver](d D, err error) (driver.Driver, error) {
	if err != nil {
		return nil, err
	}
	return d, nil
}

// CheckContext refuses a nil ctx.
func CheckContext(ctx context.Context) error {
	if ctx == nil {
		return &driver.InvalidError{Argument: "ctx", Problem: "is nil", Allowed: "a context"}
	}
	return nil
}

// IsNil reports whether a value is nil, or a nil pointer in an interface.
func IsNil(x any) bool {
	v := reflect.ValueOf(x)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// Dial calls dial, which takes no ctx. If ctx ends first, dial goes on in the background,
// and discard closes the resulting client.
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
