package redistest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/servertest"
)

var noError = basictest.NoError

// strayTTL is so long that even a slow machine first releases all abandoned attempts.
const strayTTL = 5 * time.Minute

// CheckNothingIsLeft gives up attempts at random moments, on a network without faults.
// All names must become free in less than a TTL.
func CheckNothingIsLeft(tb TB, d driver.Driver) {
	tb.Helper()
	locks, err := pawl.New(d, &pawl.Options{TTL: strayTTL})
	noError(tb, err)
	ctx := context.Background()
	const goroutines, tries = 16, 300
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() {
			for k := range tries {
				ctx, cancel := context.WithTimeout(ctx, rand.N(3*time.Millisecond))
				lease, err := locks.Mutex(fmt.Sprint(i, " ", k)).TryLock(ctx)
				cancel()
				if err == nil {
					_ = lease.Release(context.Background())
				}
			}
		})
	}
	all.Wait()
	awaitFreeNames(tb, d)
	if err := locks.Close(); err != nil {
		tb.Errorf("Close: %v", err)
	}
}

// CheckASlowConnection makes one connection so slow that the release of an abandoned
// attempt overtakes the attempt, on another connection.
func CheckASlowConnection(tb TB, open func(addr string) driver.Driver) {
	tb.Helper()
	server := Start(tb)
	proxy := servertest.StartProxy(tb, server.Addr)
	near, far := open(server.Addr), open(proxy.Addr)
	locks, err := pawl.New(far, &pawl.Options{TTL: strayTTL})
	noError(tb, err)
	for round := range 5 {
		warm, err := locks.Mutex("warm").Lock(context.Background())
		noError(tb, err)
		_ = warm.Release(context.Background())
		proxy.Slow(600 * time.Millisecond)
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
				defer cancel()
				began := time.Now()
				lease, err := locks.Mutex(fmt.Sprint(round, " ", i)).TryLock(ctx)
				if took := time.Since(began); err == nil && took > 100*time.Millisecond {
					tb.Errorf("granted after %v, though its ctx ended after 100 ms", took)
				}
				if err == nil {
					_ = lease.Release(context.Background())
				}
			})
		}
		all.Wait()
		proxy.Slow(0)
	}
	awaitFreeNames(tb, near)
	_ = locks.Close()
}

// CheckAFailedForceBreaksNoLease delays a forced claim until its caller has got an error
// and another claim holds the name. The forced claim must not break that lease.
func CheckAFailedForceBreaksNoLease(tb TB, open func(addr string) driver.Driver) {
	tb.Helper()
	server := Start(tb)
	proxy := servertest.StartProxy(tb, server.Addr)
	patient := &pawl.Options{RequestTimeout: driver.MaxRequest} // that is also the timeout of a forced claim
	near, err := pawl.New(open(server.Addr), patient)
	noError(tb, err)
	far, err := pawl.New(open(proxy.Addr), patient)
	noError(tb, err)
	ctx := context.Background()
	warm, err := far.Mutex("job").ForceLock(ctx)
	noError(tb, err)
	_ = warm.Release(ctx)

	release := proxy.Hold()
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if _, err := far.Mutex("job").ForceLock(short); err == nil {
		tb.Errorf("ForceLock returns a lease, but the server got no request")
	}
	other, err := near.Mutex("job").Lock(ctx)
	noError(tb, err)
	release()
	time.Sleep(500 * time.Millisecond)
	if e, err := near.Inspect(ctx, "job"); err != nil || len(e.Holders) != 1 || e.Holders[0].Fence != other.Fence() || other.Err() != nil {
		tb.Errorf("%+v, %v, %v; want the other holder to keep its lease", e, err, other.Err())
	}
	if err := other.Release(ctx); err != nil {
		tb.Errorf("Release: %v", err)
	}
	_ = far.Close()
	_ = near.Close()
}

// awaitFreeNames waits, for less than a TTL, until no claim holds any name.
func awaitFreeNames(tb TB, d driver.Driver) {
	tb.Helper()
	lister, ok := driver.As[driver.Lister](d)
	if !ok {
		tb.Fatalf("%T has no List", d)
	}
	basictest.Until(tb, "the names become free", func() error {
		left := 0
		for _, err := range lister.List(context.Background(), "") {
			if err != nil {
				return err
			}
			left++
		}
		if left > 0 {
			return fmt.Errorf("%d names are not free", left)
		}
		return nil
	})
}

// SilentAddr returns an address that accepts connections, and never answers.
func SilentAddr(tb TB) string {
	tb.Helper()
	silent, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	noError(tb, err)
	tb.Cleanup(func() { _ = silent.Close() })
	return silent.Addr().String()
}

// CheckCallsEndWithCtx tests that each call returns as soon as its ctx ends.
// hang makes a driver whose calls wait, and returns a function that ends the wait.
func CheckCallsEndWithCtx(tb TB, hang func() (d driver.Driver, end func())) {
	tb.Helper()
	for _, cancelled := range []bool{true, false} {
		d, end := hang()
		c := claim("job")
		for what, step := range map[string]func(context.Context) error{
			"acquire": acquire(d, c), "renew": renew(d, c), "release": release(d, c),
			"read": func(ctx context.Context) error { _, err := d.Inspect(ctx, "job"); return err },
		} {
			took, longest := time.Hour, time.Duration(0)
			for try := 0; try < 5 && took > time.Second; try++ { // on a busy machine one of them may be late
				ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
				if cancelled {
					cancel()
					ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
					time.AfterFunc(100*time.Millisecond, cancel)
				}
				began := time.Now()
				err := step(ctx)
				took = time.Since(began)
				longest = max(longest, took)
				if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, driver.ErrUnavailable) {
					tb.Errorf("%s: %v; want the error of the ctx, or of a closed connection", what, err)
				}
				cancel()
			}
			if took > time.Second || longest > 10*time.Second {
				tb.Errorf("%s: five tries took up to %v, the last one %v", what, longest, took)
			}
		}
		end()
		began := time.Now()
		if err := d.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
		if took := time.Since(began); took > 8*time.Second {
			tb.Errorf("Close took %v", took)
		}
	}
}
