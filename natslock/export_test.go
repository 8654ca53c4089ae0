package natslock

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/locktable"
)

// Driver is the concrete type of the driver.
type Driver = lockDriver

// For the tests of this package.
var (
	KeyOf  = keyOf
	NameOf = nameOf
)

// AssumeServerAhead makes a driver assume that the server's clock is ahead by this time.
func (d *lockDriver) AssumeServerAhead(ahead time.Duration) {
	now := time.Now()
	d.store.clock.Forget()
	d.store.clock.Learn(locktable.At(now.Add(ahead)), now, now)
}

// ForgetTime makes a driver ask for the server's time again.
func ForgetTime(d *lockDriver) { d.store.clock.Forget() }

// ExpireConfig makes a driver read the bucket's configuration again.
func ExpireConfig(d *lockDriver) {
	ago := time.Now().Add(-configMaxAge)
	d.store.bucket.readAt.Store(&ago)
}

// ServerAddr returns the address of the server to which the driver is connected.
func (d *lockDriver) ServerAddr() string { return d.store.nc.ConnectedAddr() }

// MaxLoadAge is maxLoadAge, for tests.
const MaxLoadAge = maxLoadAge

// CountReads makes n reads, one after the other, with answers that take a round trip. It
// returns the number of requests for each read.
func CountReads(ctx context.Context, n int, roundTrip time.Duration) (requests []int) {
	s := &store{}
	for range n {
		sent := 0
		_, _ = retryRead(ctx, s, func(ctx context.Context) (struct{}, error) {
			sent++
			return struct{}{}, backoff.Wait(ctx, roundTrip)
		})
		requests = append(requests, sent)
	}
	return requests
}
