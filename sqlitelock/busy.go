package sqlitelock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// retry repeats try while other processes are in the way: at once a few times, since a
// step takes some microseconds, then with growing pauses, whose jitter keeps two
// processes from meeting for ever. It gives up when ctx ends, or after busyTimeout if ctx
// has no deadline.
func (t *table) retry(ctx context.Context, try func() error) error {
	err := try()
	if !isBusy(err) {
		return err
	}
	began := time.Now()
	_, bounded := ctx.Deadline()
	for n := 0; isBusy(err); n++ {
		if ended := t.pause(ctx, n); ended != nil {
			if errors.Is(ended, context.DeadlineExceeded) { // say also what took so long
				ended = &driver.Error{Backend: backend(t.path), Op: "write", Hint: busyHint, Err: fmt.Errorf("%w (%w)", ended, err)}
			}
			return ended
		}
		if !bounded && time.Since(began) > t.busyTimeout {
			return err
		}
		err = try()
	}
	return err
}

// The pauses are coarse: a process in which nothing else runs waits for a timer in epoll,
// which counts in milliseconds, so most of them take one. With exact ones (nanosleep) a
// name that many wait for is handed over a little more often, but processes with names of
// their own get a fifth less through: the write lock then goes back and forth, and SQLite
// reads its pages anew each time that another process has written.
const (
	atOnce     = 6 // tries that only let other goroutines run in between
	firstPause = 100 * time.Microsecond
	lastPause  = 2 * time.Millisecond
)

// pause waits before the n-th repetition.
func (t *table) pause(ctx context.Context, n int) error { return pause(ctx, n, t.life.Done()) }

func pause(ctx context.Context, n int, closed <-chan struct{}) error {
	if n < atOnce {
		runtime.Gosched()
		return ctx.Err()
	}
	timer := time.NewTimer(backoff.Around(backoff.Doubled(firstPause, n-atOnce, lastPause)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	case <-closed:
		return driver.ErrClosed
	}
}
