package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

func must[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

var asDriver = servertest.As[*redisscript.Driver] // converts the driver of New or Open to its concrete type

var ctx = context.Background()

// Short names for the helpers of all tests.
var (
	waits       = servertest.Waits
	rises       = servertest.Rises
	noError     = basictest.NoError
	becomes     = basictest.Eventually
	skipIfShort = basictest.SkipIfShort
	mutex       = servertest.Mutex
	queued      = servertest.Queued
	reader      = servertest.Reader
	lease       = servertest.Lease
	gets        = servertest.Gets
	renews      = servertest.Renews
	releases    = servertest.Releases
	cycle       = servertest.Cycle
	listen      = servertest.Listen
	hear        = servertest.Hear
	watch       = servertest.Watch
	open        = servertest.Open[*redisscript.Driver]

	openDriver  = servertest.OpenDriver[*redisscript.Driver]
	unavailable = redistest.WantServerError
	eventually  = redistest.Recovers
)

func raises(t testing.TB, d driver.FenceRaiser, c driver.Claim) {
	t.Helper()
	want := uint64(time.Now().Add(time.Minute).UnixMicro())
	if got, err := d.RaiseFence(ctx, lease(c), want); err != nil || got != want {
		t.Fatalf("RaiseFence: %d, %v; want %d", got, err, want)
	}
}
