package servertest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// Open opens a driver. A slow server may not answer in time, so Open retries unless the
// error is permanent.
func Open[D driver.Driver](tb TB, url string) D {
	tb.Helper()
	for began := time.Now(); ; {
		d, err := As[D](driver.Open(context.Background(), url))
		if err == nil {
			return d
		}
		if e, ok := errors.AsType[*driver.Error](err); !ok || e.Permanent || time.Since(began) > 3*time.Minute {
			tb.Fatalf("%v", err)
		}
		time.Sleep(10 * time.Millisecond) // a server that refuses connections answers at once
	}
}

// OpenDriver is Open, and closes the driver at the end of the test.
func OpenDriver[D driver.Driver](tb TB, url string) D {
	tb.Helper()
	d := Open[D](tb, url)
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return d
}

// OpensWhenServerStarts opens the URL of a server that is down. The first attempt must
// fail with an error that is not permanent. Then run starts the server, and a later
// attempt succeeds.
func OpensWhenServerStarts(tb TB, url string, run func()) {
	tb.Helper()
	d, err := driver.Open(context.Background(), url)
	if err == nil {
		_ = d.Close()
		tb.Fatalf("%s was opened without its server", url)
	}
	if e, ok := errors.AsType[*driver.Error](err); !ok || e.Permanent {
		tb.Fatalf("%v; want a temporary error", err)
	}
	within, cancel := context.WithTimeout(context.Background(), 3*time.Minute) // only a hang takes so long
	defer cancel()
	var locks *pawl.Client
	done := make(chan struct{})
	go func() {
		defer close(done)
		locks, err = pawl.Open(within, url, &pawl.Options{RetryFor: time.Hour})
	}()
	run()
	<-done
	if err != nil {
		tb.Fatalf("%v; want Open to succeed when the server runs", err)
	}
	noError(tb, locks.Close())
}

// OpensTwenty opens twenty drivers at once on a new server. All must open, and one of
// them must get the lock.
func OpensTwenty(tb TB, url string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute) // only a hang takes so long
	defer cancel()
	var granted atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			d, err := driver.Open(ctx, url)
			if err != nil {
				tb.Errorf("%v", err)
				return
			}
			defer d.Close()
			if _, err = d.Acquire(ctx, Mutex("job")); err == nil {
				granted.Add(1)
			} else if !errors.Is(err, driver.ErrHeld) {
				tb.Errorf("%v", err)
			}
		})
	}
	if all.Wait(); granted.Load() != 1 {
		tb.Errorf("%d of 20 drivers hold the name", granted.Load())
	}
}

// FirstCheck delays the first request of a driver whose requests go through the proxy.
// This request, which contains text, checks the server. A second call must wait for the
// check, but not beyond its own ctx.
func FirstCheck(tb TB, d driver.Driver, through *Proxy, text string) {
	tb.Helper()
	checking, letGo := through.HoldFrom(text)
	defer letGo()
	acquire := func(ctx context.Context, name string) <-chan error {
		ended := make(chan error, 1)
		go func() {
			_, err := d.Acquire(ctx, Mutex(name))
			ended <- err
		}()
		return ended
	}
	first := acquire(context.Background(), "first")
	<-checking
	short, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	select {
	case err := <-acquire(short, "second"):
		if !errors.Is(err, context.DeadlineExceeded) {
			tb.Errorf("%v; want DeadlineExceeded", err)
		}
	case <-time.After(time.Minute):
		tb.Errorf("the second call waits beyond its ctx")
	}
	letGo()
	if err := <-first; err != nil {
		tb.Errorf("the first call: %v", err)
	}
}
