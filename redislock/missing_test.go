package redislock_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
)

// A client deletes one key of a name, or the server evicts it. The name is never granted
// beside a lease that may still last, and works again when no lease can last any more.
func TestANameHealsWhenOneOfItsKeysIsGone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := start(t, "redis://"+server.Addr)
	const short = 1500 * time.Millisecond // long enough for two steps on a busy machine
	brief := func(c driver.Claim) driver.Claim {
		c.TTL, c.QueueTTL = short, short
		return c
	}
	for what, state := range map[string]struct {
		shared time.Duration // how long a shared lease lasts, with its lock-delay; 0 without one
		make   func(t *testing.T, name string)
	}{
		"a mutex and a waiter": {0, func(t *testing.T, name string) {
			gets(t, d, brief(mutex(name)))
			waits(t, d, brief(queued(name)))
		}},
		"a mutex and many waiters": {0, func(t *testing.T, name string) {
			gets(t, d, brief(mutex(name)))
			for range 3 {
				waits(t, d, brief(queued(name)))
			}
		}},
		"a broken mutex": {0, func(t *testing.T, name string) {
			breaks(t, d, name, gets(t, d, mutex(name)).Fence)
		}},
		"readers": {short, func(t *testing.T, name string) {
			gets(t, d, brief(reader(name)))
			gets(t, d, brief(reader(name)))
		}},
		"readers and a writer that waits": {short, func(t *testing.T, name string) {
			gets(t, d, brief(reader(name)))
			waits(t, d, brief(queued(name)))
		}},
		"a reader that was renewed": {2 * short, func(t *testing.T, name string) {
			c := brief(reader(name))
			gets(t, d, c)
			c.TTL = 2 * short
			renews(t, d, c)
		}},
		"a reader with a lock-delay": {2 * short, func(t *testing.T, name string) {
			c := brief(reader(name))
			c.LockDelay = short
			gets(t, d, c)
		}},
		"a reader that is kept for its minimum hold": {2 * short, func(t *testing.T, name string) {
			c := brief(reader(name))
			gets(t, d, c)
			l := lease(c)
			l.MinHold = 2 * short
			noError(t, d.Release(ctx, l))
		}},
		"a reader that was passed on": {short, func(t *testing.T, name string) {
			writer, waiter := mutex(name), queued(name)
			waiter.Weight, waiter.QueueTTL = 1, short
			gets(t, d, writer)
			waits(t, d, waiter)
			releases(t, d, writer)
		}},
	} {
		for _, kind := range "sdle" {
			t.Run(fmt.Sprintf("%s/%c", what, kind), func(t *testing.T) {
				t.Parallel()
				name := t.Name()
				began := time.Now()
				state.make(t, name)
				before, err := d.Inspect(ctx, name)
				noError(t, err)
				server.Do("DEL", "pawl:{"+name+"}"+string(kind))
				var g driver.Grant
				for {
					if g, err = d.Acquire(ctx, mutex(name)); err == nil {
						break
					}
					if !errors.Is(err, driver.ErrHeld) {
						unavailable(t, err, false, "pawl doctor")
					}
					if time.Since(began) > 2*time.Minute {
						t.Fatal(err)
					}
					time.Sleep(10 * time.Millisecond)
				}
				if took := time.Since(began); kind != 's' && took < state.shared {
					t.Errorf("granted after %v, and a lease lasts %v", took, state.shared)
				}
				rises(t, before.Fence, g.Fence)
			})
		}
	}
}

// A name with a missing key hides no other one from a list.
func TestANameWithAMissingKeyIsAnErrorInItsPlace(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := start(t, "redis://"+server.Addr)
	for _, name := range []string{"a", "b", "c"} {
		gets(t, d, reader(name))
	}
	server.Do("DEL", "pawl:{b}d")
	var names []string
	for e, err := range d.List(ctx, "") {
		if (err != nil) != (e.Name == "b") {
			t.Errorf("%q: %v", e.Name, err)
		}
		names = append(names, e.Name)
	}
	if want := []string{"a", "b", "c"}; !slices.Equal(names, want) {
		t.Errorf("listed: %q; want %q", names, want)
	}
}

// An error about one of several names names it: the advice is to delete its keys.
func TestOneOfSeveralNamesThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := start(t, "redis://"+server.Addr)
	for what, spoil := range map[string]func(name string){
		"a key is missing": func(name string) {
			gets(t, d, reader(name))
			server.Do("DEL", "pawl:{"+name+"}d")
		},
		"foreign bytes":  func(name string) { server.Do("SET", "pawl:{"+name+"}s", "mine") },
		"a foreign type": func(name string) { server.Do("HSET", "pawl:{"+name+"}s", "a", "b") },
	} {
		bad := what + " b"
		spoil(bad)
		_, err := d.AcquireAll(ctx, []driver.Claim{mutex(what + " a"), mutex(bad), mutex(what + " c")})
		if e, ok := errors.AsType[*driver.Error](err); !ok || e.Name != bad {
			t.Errorf("%s: %v; want it to be about %q", what, err, bad)
		}
	}
}
