package natslock

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/locktable"
)

// Driver is the driver, with all that it can do.
type Driver = lockDriver

// For the tests of this package.
var (
	KeyOf  = keyOf
	NameOf = nameOf
)

// Believes makes a driver assume that the server's clock is so much ahead of ours.
func (d *lockDriver) Believes(ahead time.Duration) {
	now := time.Now()
	d.store.clock.Forget()
	d.store.clock.Learn(locktable.At(now.Add(ahead)), now, now)
}

// ForgetTime makes a driver ask for the server's time again.
func ForgetTime(d *lockDriver) { d.store.clock.Forget() }

// ForgetLook makes a driver assume that it read the bucket's configuration a minute ago.
func ForgetLook(d *lockDriver) {
	ago := time.Now().Add(-configMaxAge)
	d.store.bucket.readAt.Store(&ago)
}

// Node is the address of the server that a driver is connected to.
func (d *lockDriver) Node() string { return d.store.nc.ConnectedAddr() }

// MaxLoadAge is the age up to which a value that was read may be used.
const MaxLoadAge = maxLoadAge

// Questions sends n reads in a row on a link that takes so long for each answer, and
// returns how often each was sent.
func Questions(ctx context.Context, n int, trip time.Duration) (asked []int) {
	s := &store{}
	for range n {
		times := 0
		_, _ = retryRead(ctx, s, func(ctx context.Context) (struct{}, error) {
			times++
			return struct{}{}, backoff.Wait(ctx, trip)
		})
		asked = append(asked, times)
	}
	return asked
}
