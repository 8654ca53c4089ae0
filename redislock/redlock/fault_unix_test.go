//go:build unix

package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/redislock"
)

// Two of three servers are paused with requests in their sockets, and resume later. By
// then, no caller wants the grants of these requests.
func TestAPausedMajorityGrantsNothingAndKeepsNothing(t *testing.T) {
	skipIfShort(t, "servers that stand still")
	t.Parallel()
	const ttl = 10 * time.Second
	servers, url := threeServers(t)
	c := client(t, url)
	last := cycle(t, c, "try")
	for _, s := range servers[1:] {
		s.Pause()
		defer s.Resume() // so that the server can be killed cleanly if the test fails
	}

	began := time.Now()
	if lease, err := c.Mutex("try", pawl.WithTTL(ttl)).TryLock(ctx); !errors.Is(err, pawl.ErrUnavailable) {
		t.Fatalf("TryLock: %v, %v; want ErrUnavailable", lease, err)
	}
	if took := time.Since(began); took > ttl {
		t.Errorf("TryLock took %v", took)
	}
	soon, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	began = time.Now()
	if lease, err := c.Mutex("wait", pawl.WithTTL(ttl)).Lock(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Lock: %v, %v; want context.DeadlineExceeded", lease, err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("Lock took %v with a deadline of 2s", took)
	}

	for _, s := range servers[1:] {
		s.Resume()
	}
	began = time.Now()
	for _, name := range []string{"try", "wait"} {
		for i, s := range servers {
			for !isFree(t, s, name) {
				if time.Since(began) > ttl {
					t.Fatalf("%q still has a holder or a waiter on node %d", name, i+1)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
	time.Sleep(time.Second) // no late grant arrives
	for i, s := range servers {
		if !isFree(t, s, "try") || !isFree(t, s, "wait") {
			t.Errorf("a holder or a waiter is back on node %d", i+1)
		}
	}
	risingCycles(t, last, c, "try", 3)
}

// isFree reports whether one server has no holder and no waiter of the name.
func isFree(t *testing.T, s *redistest.Server, name string) bool {
	t.Helper()
	d, err := redislock.Open(ctx, "redis://"+s.Addr)
	noError(t, err)
	defer d.Close()
	e, err := d.Inspect(ctx, name)
	noError(t, err)
	return len(e.Holders)+len(e.Waiters) == 0
}
