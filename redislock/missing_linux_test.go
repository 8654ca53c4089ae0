package redislock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/timeshift"
)

// A client deletes one key of a name, or the server evicts it. No claim is granted while
// a lease may last, and the name works again when no lease can last any more. The test
// sets the server's clock.
func TestANameIsUsableAgainAfterOneOfItsKeysIsDeleted(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	clock, env := timeshift.New(t, server.Dir)
	server.Kill()
	server.Env = env
	server.Run()
	d := openDriver(t, "redis://"+server.Addr)
	const ttl = time.Hour
	withTTL := func(c driver.Claim) driver.Claim {
		c.TTL, c.QueueTTL = ttl, ttl
		return c
	}
	type name struct {
		name   string
		expiry time.Duration // the time before which no claim may be granted
		fence  uint64
	}
	var names []name
	for what, state := range map[string]struct {
		shared time.Duration // the time that a shared lease lasts, with its lock-delay; 0 without one
		make   func(name string)
	}{
		"a mutex and a waiter": {0, func(name string) {
			gets(t, d, withTTL(mutex(name)))
			waits(t, d, withTTL(queued(name)))
		}},
		"a mutex and many waiters": {0, func(name string) {
			gets(t, d, withTTL(mutex(name)))
			for range 3 {
				waits(t, d, withTTL(queued(name)))
			}
		}},
		"a broken mutex": {0, func(name string) {
			breaks(t, d, name, gets(t, d, mutex(name)).Fence)
		}},
		"readers": {ttl, func(name string) {
			gets(t, d, withTTL(reader(name)))
			gets(t, d, withTTL(reader(name)))
		}},
		"readers and a writer that waits": {ttl, func(name string) {
			gets(t, d, withTTL(reader(name)))
			waits(t, d, withTTL(queued(name)))
		}},
		"a reader that was renewed": {2 * ttl, func(name string) {
			c := withTTL(reader(name))
			gets(t, d, c)
			c.TTL = 2 * ttl
			renews(t, d, c)
		}},
		"a reader with a lock-delay": {2 * ttl, func(name string) {
			c := withTTL(reader(name))
			c.LockDelay = ttl
			gets(t, d, c)
		}},
		"a reader that is kept for its minimum hold": {2 * ttl, func(name string) {
			c := withTTL(reader(name))
			gets(t, d, c)
			l := lease(c)
			l.MinHold = 2 * ttl
			noError(t, d.Release(ctx, l))
		}},
		"a reader that was granted by a release": {ttl, func(name string) {
			writer, waiter := mutex(name), queued(name)
			waiter.Weight, waiter.QueueTTL = 1, ttl
			gets(t, d, writer)
			waits(t, d, waiter)
			releases(t, d, writer)
		}},
	} {
		for _, kind := range "sdle" {
			n := name{name: fmt.Sprintf("%s/%c", what, kind), expiry: state.shared}
			state.make(n.name)
			before, err := d.Inspect(ctx, n.name)
			noError(t, err)
			if n.fence = before.Fence; kind == 's' {
				n.expiry = 0 // without the state, the name is free
			}
			server.Do("DEL", "pawl:{"+n.name+"}"+string(kind))
			names = append(names, n)
		}
	}
	for _, elapsed := range []time.Duration{0, ttl + ttl/2, 3 * ttl} {
		clock.Set(elapsed)
		remaining := names[:0]
		for _, n := range names {
			g, err := d.Acquire(ctx, mutex(n.name))
			switch {
			case err == nil && elapsed < n.expiry:
				t.Errorf("%s: granted after %v, but a lease lasts %v", n.name, elapsed, n.expiry)
			case err == nil:
				rises(t, n.fence, g.Fence)
			case !errors.Is(err, driver.ErrHeld):
				unavailable(t, err, false, "pawl doctor")
				fallthrough
			default:
				remaining = append(remaining, n)
			}
		}
		names = remaining
	}
	for _, n := range names {
		t.Errorf("%s: the name is not usable again", n.name)
	}
}
