package natslock

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/internal/pause"
	"github.com/pawl-go/pawl/locktable"
)

// For the tests of this package.
var (
	KeyOf  = keyOf
	NameOf = nameOf
)

// Believes makes a driver take the server's clock for so much ahead of ours.
func (d *Driver) Believes(ahead time.Duration) {
	now := time.Now()
	d.store.clock.Forget()
	d.store.clock.Learn(locktable.At(now.Add(ahead)), now, now)
}

// ForgetTime makes a driver ask for the server's time.
func ForgetTime(d *Driver) { d.store.clock.Forget() }

// ForgetLook makes a driver believe that it read the bucket's configuration a minute ago.
func ForgetLook(d *Driver) {
	ago := time.Now().Add(-lookAgain)
	d.store.bucket.looked.Store(&ago)
}

// Node is the address of the server that a driver is connected to.
func (d *Driver) Node() string { return d.store.nc.ConnectedAddr() }

// Fresh is how long what was seen of a name is relied on.
const Fresh = fresh

// Questions asks n questions in a row on a link that takes so long for each answer, and
// returns how often each was asked.
func Questions(ctx context.Context, n int, trip time.Duration) (asked []int) {
	s := &store{}
	for range n {
		times := 0
		_, _ = again(ctx, s, func(ctx context.Context) (struct{}, error) {
			times++
			return struct{}{}, pause.For(ctx, trip)
		})
		asked = append(asked, times)
	}
	return asked
}
