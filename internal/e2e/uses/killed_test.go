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
	on(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		first := b.process(t, "election", name, brief.TTL)
		fence := must(strconv.ParseUint(first.hears("works"), 10, 64))(t)
		c, next, ended := b.client(t), uint64(0), make(chan error, 1)
		go func() {
			ended <- c.Election(name).Run(soon(t), func(ctx context.Context) error {
				next, _ = pawl.FenceOf(ctx, name)
				return nil
			})
		}()
		waiters(t, c, name, 1)
		first.kill()
		if noError(t, get(t, ended, "the next lead")); next <= fence {
			t.Errorf("after the fence %d the next leader has %d", fence, next)
		}
	})
}

func TestATickOfAKilledProcessIsTakenUp(t *testing.T) {
	nightly(t, "killed processes on each backend")
	on(t, func(t *testing.T, b *backend) {
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
	on(t, func(t *testing.T, b *backend) {
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
