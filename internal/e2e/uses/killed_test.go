package uses_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// The tests kill processes with kill -9. Others get their locks after the TTL.

func TestAnotherClientLeadsAfterTheLeaderIsKilled(t *testing.T) {
	skipIfShort(t, "killed processes on each backend")
	onEachBackend(t, func(t *testing.T, b *backend) {
		name := freshName(t)
		first := b.startProcess(t, "election", name, shortTTL.TTL)
		fence := must(strconv.ParseUint(first.expect("works"), 10, 64))(t)
		c, next, ended := b.client(t), uint64(0), make(chan error, 1)
		go func() {
			ended <- c.Election(name).Run(within(t), func(ctx context.Context) error {
				next, _ = pawl.FenceOf(ctx, name)
				return nil
			})
		}()
		waitForWaiters(t, c, name, 1)
		first.kill()
		if noError(t, receive(t, ended, "the next lead")); next <= fence {
			t.Errorf("the next leader has the fence %d, which is not greater than %d", next, fence)
		}
	})
}

func TestAnotherClientRunsTheTickOfAKilledProcess(t *testing.T) {
	skipIfShort(t, "killed processes on each backend")
	onEachBackend(t, func(t *testing.T, b *backend) {
		name := freshName(t)
		first := b.startProcess(t, "once", name, shortTTL.TTL)
		first.expect("works")
		first.kill()
		o := b.client(t).Once(name, pawl.WithAtLeastOnce())
		for _, want := range []bool{true, false} {
			if ran, err := o.Do(within(t), "1", nothing); ran != want || err != nil {
				t.Errorf("ran: %v, %v; want %v", ran, err, want)
			}
		}
	})
}

// A detached lease belongs to no process: kill -9 does not end it.
func TestADetachedLeaseOutlivesItsProcess(t *testing.T) {
	skipIfShort(t, "killed processes on each backend")
	onEachBackend(t, func(t *testing.T, b *backend) {
		name := freshName(t)
		p := b.startProcess(t, "detach", name, time.Hour)
		handle := pawl.Handle(p.expect("handle"))
		p.kill()
		c := b.client(t)
		_, err := c.Mutex(name).TryLock(within(t))
		isError(t, err, pawl.ErrHeld)
		lease := must(c.Attach(within(t), handle))(t)
		noError(t, lease.Confirm(within(t)))
		noError(t, lease.Release(background))
		waitUntilFree(t, c, name)
	})
}
