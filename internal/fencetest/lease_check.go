package fencetest

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/claimtest"
)

// ChecksTheHolder wants a check of leases to let the holder pass until its lease is over,
// and nobody else. check works in a transaction of its own; sleep passes a time on the
// clock of the locks.
func ChecksTheHolder(t TB, d driver.Driver, check func(l driver.Lease) error, sleep func(time.Duration)) {
	t.Helper()
	c := claimtest.Mutex("job")
	c.TTL = 500 * time.Millisecond
	g := claimtest.Gets(t, d, c)
	if err := check(Lease("job", g.Fence)); err != nil {
		t.Errorf("the holder: %v", err)
	}
	for name, fence := range map[string]uint64{"job": g.Fence - 1, "other": g.Fence} {
		if err := check(Lease(name, fence)); !errors.Is(err, driver.ErrStale) {
			t.Errorf("%s with %d: %v; want ErrStale", name, fence, err)
		}
	}
	sleep(time.Second)
	if err := check(Lease("job", g.Fence)); !errors.Is(err, driver.ErrStale) {
		t.Errorf("after its lease: %v; want ErrStale", err)
	}
	if err := check(Lease("", g.Fence)); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("without a name: %v; want ErrInvalid", err)
	}
}

// ChecksEachWrite has many increment a number that they read before, in checked
// transactions that may end long after their leases: none may be lost. increment waits
// for pause between the two.
func ChecksEachWrite(t TB, d driver.Driver, increment func(l driver.Lease, pause time.Duration) error, read func() (int, error)) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	accepted, refused := 0, 0
	for range 6 {
		all.Go(func() {
			for k := range 30 {
				c := claimtest.Mutex("job")
				c.TTL = 60 * time.Millisecond
				g, err := d.Acquire(t.Context(), c)
				if err != nil {
					time.Sleep(10 * time.Millisecond)
					continue
				}
				err = increment(Lease("job", g.Fence), time.Duration(k%3)*100*time.Millisecond)
				mu.Lock()
				switch {
				case err == nil:
					accepted++
				case errors.Is(err, driver.ErrStale), strings.Contains(err.Error(), "repeat the transaction"):
					refused++
				default:
					t.Errorf("%v", err)
				}
				mu.Unlock()
				_ = d.Release(t.Context(), claimtest.Lease(c))
			}
		})
	}
	all.Wait()
	if n, err := read(); err != nil || n != accepted || accepted == 0 || refused == 0 {
		t.Errorf("%d were accepted, %d refused, and the number is %d, %v", accepted, refused, n, err)
	}
}

// Lease is one for a check to look at.
func Lease(name string, fence uint64) driver.Lease { return lease{name, fence} }

type lease struct {
	name  string
	fence uint64
}

func (l lease) StoredName() string { return l.name }
func (l lease) Fence() uint64      { return l.fence }
