package redis_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/redislock"
)

var ctx = context.Background()

// The steps of a test.
var (
	isRefused = servertest.Waits
	noError   = basictest.NoError
	nightly   = basictest.Nightly
	mutex     = servertest.Mutex
	queued    = servertest.Queued
	reader    = servertest.Reader
	lease     = servertest.Lease
	gets      = servertest.Gets
	renews    = servertest.Renews
	releases  = servertest.Releases
)

// asDriver converts the driver of New or Open to its own type, with all that it can do.
var asDriver = servertest.As[*redisscript.Driver]

// openDriver opens a driver. The end of the test closes it.
func openDriver(t testing.TB, url string) *redisscript.Driver {
	t.Helper()
	d := open(t, url)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func open(t testing.TB, url string) *redisscript.Driver {
	t.Helper()
	d, err := asDriver(redislock.Open(t.Context(), url))
	noError(t, err)
	return d
}

// unavailable checks for a driver.Error of this kind with this hint.
func unavailable(t *testing.T, err error, permanent bool, hint string) {
	t.Helper()
	trouble, ok := errors.AsType[*driver.Error](err)
	if !ok || !errors.Is(err, driver.ErrUnavailable) {
		t.Fatalf("%v; want a *driver.Error", err)
	}
	if trouble.Permanent != permanent || !strings.Contains(trouble.Hint, hint) || !strings.HasPrefix(trouble.Backend, "redis 127.0.0.1:") {
		t.Errorf("%+v; want permanent %v, and a hint about %q", trouble, permanent, hint)
	}
}
