package natslock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/internal/timeshift"
)

// The server's clock is set ahead by a minute, then back by two, then right, while a name
// is held and waited for. Holder and waiter notice nothing, because their leases are
// longer. Leases that begin then last as long as they should.
func TestTheServersClockIsSet(t *testing.T) {
	skipIfShort(t, "it sets a server's clock")
	t.Parallel()
	clock := timeshift.NewGo(t, 0)
	server := natstest.StartWith(t, clock.Start)
	a, b := openDriver(t, "nats://"+server.Addr), openDriver(t, "nats://"+server.Addr)
	_, js := connect(t, server)
	servertest.ClockEndsNothing(t, a, b, 5*time.Minute, func(by time.Duration) {
		clock.Set(by)
		until(t, "the server's clock", func() error {
			if off := time.Until(bucketInfo(t, js).TimeStamp); (off - by).Abs() > 5*time.Second {
				return fmt.Errorf("the server's clock is off by %v; want %v", off, by)
			}
			return nil
		})
	})
}

// A clock that is set ahead by more than the rest of a lease ends the lease. The holder
// learns that by its next renewal, and the next holder has a greater fence.
func TestTheServersClockIsSetAheadOfALease(t *testing.T) {
	skipIfShort(t, "it sets a server's clock")
	t.Parallel()
	clock := timeshift.NewGo(t, 0)
	server := natstest.StartWith(t, clock.Start)
	a, b := openDriver(t, "nats://"+server.Addr), openDriver(t, "nats://"+server.Addr)
	c := mutex("job")
	c.TTL = 30 * time.Second
	first := gets(t, a, c)
	clock.Set(time.Minute)
	rises(t, first.Fence, gets(t, b, mutex("job")).Fence)
	isLost(t, a, c)
}
