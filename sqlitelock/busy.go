package sqlitelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// retry repeats try while other processes are in the way. At first it repeats at once,
// since a step takes some microseconds, then with growing pauses, whose jitter keeps two
// processes from colliding for ever. It gives up when ctx ends. If ctx has no deadline,
// it gives up when for busyTimeout no other process has written either: as long as they
// do, nothing is wrong, and its turn will come.
func (t *table) retry(ctx context.Context, try func() error) error {
	err := try()
	if !isBusy(err) {
		return err
	}
	began, written := time.Now(), t.lastWrite()
	_, bounded := ctx.Deadline()
	for n := 0; isBusy(err); n++ {
		if ended := t.pause(ctx, n); ended != nil {
			if errors.Is(ended, context.DeadlineExceeded) { // with the cause
				ended = &driver.Error{Backend: backend(t.path), Op: "write", Hint: busyHint, Err: fmt.Errorf("%w (%w)", ended, err)}
			}
			return ended
		}
		if !bounded && time.Since(began) > t.busyTimeout {
			latest := t.lastWrite()
			if latest.Equal(written) {
				return err
			}
			began, written = time.Now(), latest
		}
		err = try()
	}
	return err
}

// lastWrite returns the time at which a process last wrote to the log, and zero if there
// is no log.
func (t *table) lastWrite() time.Time {
	info, err := os.Stat(t.path + "-wal")
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// The pauses are coarse. In a process in which nothing else runs, Go waits for a timer in
// epoll, which counts in milliseconds, so most pauses take one. With exact pauses
// (nanosleep) a contended name is handed over a little more often, but processes with
// names of their own get a fifth less done: the write lock then goes back and forth, and
// SQLite reads its pages again each time that another process has written. Where a step
// takes longer than usual, the processors are busy, and the tries of a hundred processes
// would keep the one that writes from getting on.
const (
	immediateTries = 6 // tries that only let other goroutines run in between
	firstPause     = 100 * time.Microsecond
	lastPause      = 2 * time.Millisecond
	manyTries      = 40 // after as many, lastPause doubles, and after each 8 more, up to crowdPause
	crowdPause     = 16 * time.Millisecond
)

// pause waits before the n-th repetition.
func (t *table) pause(ctx context.Context, n int) error { return pause(ctx, n, t.life.Done()) }

func pause(ctx context.Context, n int, closed <-chan struct{}) error {
	if n < immediateTries {
		runtime.Gosched()
		return ctx.Err()
	}
	d := backoff.Doubled(firstPause, n-immediateTries, lastPause)
	if n >= manyTries {
		d = backoff.Doubled(lastPause, (n-manyTries)/8+1, crowdPause)
	}
	timer := time.NewTimer(backoff.Around(d))
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
