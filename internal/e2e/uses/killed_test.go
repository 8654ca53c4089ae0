package uses_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// The tests kill processes with kill -9. Others take over their locks after the TTL.

func TestALeaderThatIsKilledIsFollowed(t *testing.T) {
	nightly(t, "killed processes on each backend")
	onServers(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		all := campaign(t, name)
		first := b.process(t, "election", name, brief.TTL)
		fence, err := strconv.ParseUint(first.hears("works"), 10, 64)
		noError(t, err)
		c := b.client(t)
		ctx, stop := context.WithCancel(background)
		ended := all.run(ctx, c, c.Election(name), 1, 0)
		first.kill()
		all.next(term{0, fence}, 1)
		stop()
		isError(t, get(t, ended, "the end of Run"), context.Canceled)
	})
}

func TestATickOfAKilledProcessIsTakenUp(t *testing.T) {
	nightly(t, "killed processes on each backend")
	onServers(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		first := b.process(t, "once", name, brief.TTL)
		first.hears("works")
		first.kill()
		o := b.client(t).Once(name, pawl.WithAtLeastOnce())
		for _, want := range []bool{true, false} {
			if ran, err := o.Do(soon(t), "1", nothing); ran != want || err != nil {
				t.Errorf("%v, %v; want %v", ran, err, want)
			}
		}
	})
}

// A detached lease belongs to no process: kill -9 does not end it.
func TestADetachedLeaseOutlivesItsProcess(t *testing.T) {
	nightly(t, "killed processes on each backend")
	onServers(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		p := b.process(t, "detach", name, time.Hour)
		handle := pawl.Handle(p.hears("handle"))
		p.kill()
		c := b.client(t)
		_, err := c.Mutex(name).TryLock(soon(t))
		isError(t, err, pawl.ErrHeld)
		lease := must(c.Attach(soon(t), handle))(t)
		noError(t, lease.Confirm(soon(t)))
		noError(t, lease.Release(background))
		free(t, c, name)
	})
}
