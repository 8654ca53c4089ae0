package fencetest

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
)

// ChecksTheHolder tests that a check of leases lets the holder pass until its lease is
// over, and no other client. check works in a transaction of its own; sleep passes a time
// on the clock of the locks.
func ChecksTheHolder(t TB, d driver.Driver, check func(leases ...driver.Lease) error, sleep func(time.Duration)) {
	t.Helper()
	job := "job " + rand.Text() // the job of an earlier call is still held
	c := servertest.Mutex(job)
	c.TTL = time.Hour
	g := servertest.Gets(t, d, c)
	if err := check(Lease(job, g.Fence)); err != nil {
		t.Errorf("the holder: %v", err)
	}
	for name, fence := range map[string]uint64{job: g.Fence - 1, "other": g.Fence} {
		if err := check(Lease(name, fence)); !errors.Is(err, driver.ErrStale) {
			t.Errorf("%s with %d: %v; want ErrStale", name, fence, err)
		}
	}
	g = brief(t, d, "brief "+job, sleep)
	if err := check(Lease("brief "+job, g.Fence)); !errors.Is(err, driver.ErrStale) {
		t.Errorf("after its lease: %v; want ErrStale", err)
	}
	if err := check(Lease("", g.Fence)); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("without a name: %v; want ErrInvalid", err)
	}
}

// brief returns the grant of a lease that is over.
func brief(t TB, d driver.Driver, name string, sleep func(time.Duration)) driver.Grant {
	t.Helper()
	c := servertest.Mutex(name)
	c.TTL = time.Second
	for {
		g, err := d.Acquire(t.Context(), c)
		sleep(2 * c.TTL)
		switch {
		case err == nil:
			return g
		case !errors.Is(err, driver.ErrUnavailable): // the request took longer than the TTL
			t.Fatalf("Acquire: %v; want it granted", err)
		}
		c.Token = driver.NewToken()
	}
}

// ChecksEachWrite has several goroutines read and increment a number, in checked
// transactions that may end long after their leases. No accepted increment may be lost.
// increment waits for pause between its read and its write.
func ChecksEachWrite(t TB, d driver.Driver, increment func(l driver.Lease, pause time.Duration) error, read func() (int, error)) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	accepted, refused := 0, 0
	both := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return accepted > 0 && refused > 0
	}
	for range 6 {
		all.Go(func() {
			for k := 0; k < 30 || k < 300 && !both(); k++ {
				unit := 20 * time.Millisecond << (k / 30) // doubles each 30 rounds, until some passed and some did not
				c := servertest.Mutex("job")
				c.TTL = 3 * unit
				g, err := d.Acquire(t.Context(), c)
				if err != nil {
					time.Sleep(10 * time.Millisecond)
					continue
				}
				err = increment(Lease("job", g.Fence), time.Duration(k%3)*5*unit)
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
				_ = d.Release(t.Context(), servertest.Lease(c))
			}
		})
	}
	all.Wait()
	if n, err := read(); err != nil || n != accepted || accepted == 0 || refused == 0 {
		t.Errorf("%d were accepted, %d refused, and the number is %d, %v", accepted, refused, n, err)
	}
}

// ChecksSeveral wants a check of several leases to look at each of them. check works in a
// transaction of its own.
func ChecksSeveral(t TB, d driver.Driver, check func(leases ...driver.Lease) error) {
	t.Helper()
	a, b, one, two := servertest.Mutex("a"), servertest.Mutex("b"), servertest.Reader("shared"), servertest.Reader("shared")
	la, lb := Lease("a", servertest.Gets(t, d, a).Fence), Lease("b", servertest.Gets(t, d, b).Fence)
	l1, l2 := Lease("shared", servertest.Gets(t, d, one).Fence), Lease("shared", servertest.Gets(t, d, two).Fence)
	for _, leases := range [][]driver.Lease{{la, lb}, {lb, la}, {la, la}, {l2, lb, l1, la}} {
		if err := check(leases...); err != nil {
			t.Errorf("%v: %v", leases, err)
		}
	}
	servertest.Releases(t, d, b)
	servertest.Releases(t, d, one)
	for over, leases := range map[string][]driver.Lease{`"b"`: {lb, la}, `"shared"`: {l2, la, l1}, `"new"`: {la, Lease("new", 1)}} {
		if err := check(leases...); !errors.Is(err, driver.ErrStale) || !strings.Contains(err.Error(), over) || strings.Contains(err.Error(), `"a"`) {
			t.Errorf("%v; want ErrStale, for %s", err, over)
		}
	}
	if err := check(la, l2); err != nil {
		t.Errorf("those that hold: %v", err)
	}
	refused(t, check(), "no lease")
	for _, l := range []driver.Lease{nil, (*pawl.Lease)(nil), new(pawl.Lease)} {
		refused(t, check(l), "lease is nil", "LeaseOf")
		refused(t, check(la, l), "lease 2 of 2 is nil", "LeaseOf")
	}
}

// refused wants an argument refused, in these words.
func refused(t TB, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		if !errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrStale) || !strings.Contains(err.Error(), word) {
			t.Errorf("%v; want it refused, with %q", err, word)
		}
	}
}

// ChecksInAnyOrder has transactions check the same leases in opposite orders, beside
// their renewals. No transaction may fail because it is in the way of another.
func ChecksInAnyOrder(t TB, d driver.Driver, check func(leases ...driver.Lease) error) {
	t.Helper()
	var leases []driver.Lease
	var refs []driver.LeaseRef
	for _, name := range []string{"a", "b", "c"} {
		c := servertest.Mutex(name)
		c.TTL = time.Hour
		leases = append(leases, Lease(name, servertest.Gets(t, d, c).Fence))
		refs = append(refs, servertest.Lease(c))
	}
	backward := slices.Clone(leases)
	slices.Reverse(backward)
	var all sync.WaitGroup
	for _, order := range [][]driver.Lease{leases, backward, leases, backward} {
		all.Go(func() {
			for range 50 {
				if err := check(order...); err != nil {
					t.Errorf("%v: %v", order, err)
					return
				}
			}
		})
	}
	over, renewed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(renewed)
		for {
			select {
			case <-over:
				return
			case <-time.After(5 * time.Millisecond):
				_, _ = d.Renew(t.Context(), refs) // which may find a row locked
			}
		}
	}()
	all.Wait()
	close(over)
	<-renewed
}

// AsksTheClient tests that a check refuses a lease that only its client knows to be over,
// and a lease of another backend. AsksTheClient opens the client over the driver.
func AsksTheClient(t TB, d driver.Driver, check func(ctx context.Context, leases ...driver.Lease) error) {
	t.Helper()
	locks := must(pawl.New(d, nil))(t)
	t.Cleanup(func() { _ = locks.Close() })
	passed := locks.Mutex("passed")
	first := must(passed.Lock(t.Context()))(t)
	next := make(chan *pawl.Lease)
	go func() {
		l, err := passed.Lock(t.Context())
		if err != nil {
			t.Errorf("%v", err)
		}
		next <- l
	}()
	for len(must(locks.Inspect(t.Context(), "passed"))(t).Holders) == 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond) // so that it waits
	if err := first.Release(t.Context()); err != nil {
		t.Errorf("%v", err)
	}
	if err := check(t.Context(), first); !errors.Is(err, driver.ErrStale) || !errors.Is(err, pawl.ErrReleased) {
		t.Errorf("one that was passed on: %v; want ErrStale, because it was released", err)
	}
	if err := check(t.Context(), <-next); err != nil {
		t.Errorf("the one that has it: %v", err)
	}

	err := pawl.All(locks.Mutex("y"), locks.Mutex("x")).Do(t.Context(), func(ctx context.Context) error {
		x, _ := pawl.LeaseOf(ctx, "x")
		y, _ := pawl.LeaseOf(ctx, "y")
		if err := check(ctx, y, x); err != nil {
			t.Errorf("inside All: %v", err)
		}
		if err := locks.Break(t.Context(), "y", y.Fence(), &pawl.BreakOptions{Delay: -1}); err != nil {
			t.Errorf("%v", err)
		}
		<-ctx.Done()
		err := check(ctx, x, y)
		if !errors.Is(err, driver.ErrStale) || !errors.Is(err, pawl.ErrLost) || !strings.Contains(err.Error(), `"y"`) {
			t.Errorf("after a break, with the ctx of Do: %v; want ErrStale, ErrLost", err)
		}
		return err
	})
	if !errors.Is(err, driver.ErrStale) || !errors.Is(err, pawl.ErrLost) {
		t.Errorf("Do: %v; want ErrStale, ErrLost", err)
	}

	client, _ := Memory(t)
	refused(t, check(t.Context(), must(client().Mutex("x").Lock(t.Context()))(t)), "of memory")
}

// Lease returns a lease with this name and fence, for a check.
func Lease(name string, fence uint64) driver.Lease { return lease{name, fence} }

type lease struct {
	name  string
	fence uint64
}

func (l lease) StoredName() string { return l.name }
func (l lease) Fence() uint64      { return l.fence }
