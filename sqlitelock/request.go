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

// retry repeats try while the file is busy: first at once, because a step takes some
// microseconds, then after growing pauses. The pauses have jitter, so that two processes
// do not collide for ever. retry gives up when ctx ends. If ctx has no deadline, it also
// gives up after busyTimeout without a write by any process; while others write, its turn
// will come.
func (t *table) retry(ctx context.Context, try func() error) error {
	err := try()
	if !isBusy(err) {
		return err
	}
	began, written := time.Now(), t.lastWrite()
	_, bounded := ctx.Deadline()
	for n := 0; isBusy(err); n++ {
		if ended := t.pause(ctx, n); ended != nil {
			if errors.Is(ended, context.DeadlineExceeded) { // add the cause
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

// retrySlowly is retry for tries that take some time, such as opening the file. Processes
// whose tries overlap keep each other out, so each of them also pauses for a part of the
// time that its try took, and for more after each failed try.
func (t *table) retrySlowly(ctx context.Context, try func() error) error {
	failed := 0
	return t.retry(ctx, func() error {
		began := time.Now()
		err := try()
		if isBusy(err) {
			failed++
			_ = backoff.Wait(ctx, backoff.Random(time.Duration(failed)*time.Since(began))) // retry looks at ctx
		}
		return err
	})
}

// lastWrite returns the time of the last write to the log, and zero if there is no log.
func (t *table) lastWrite() time.Time {
	info, err := os.Stat(t.path + "-wal")
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Most pauses take a millisecond, because an idle Go process waits for timers in epoll,
// which counts in milliseconds. Exact pauses (nanosleep) make the hand-over of one busy
// name a little faster. But processes with different names then do a fifth less work: the
// write lock alternates between them, and SQLite reads its pages again after each write
// by another process. After crowdedTries the processors are probably busy. Then the
// retries of a hundred processes would slow down the process that writes.
const (
	immediateTries  = 6 // the first tries, between which only other goroutines run
	minPause        = 100 * time.Microsecond
	maxPause        = 2 * time.Millisecond
	crowdedTries    = 40 // after this many tries, and after each 8 more, the pause doubles, up to maxCrowdedPause
	maxCrowdedPause = 16 * time.Millisecond
)

// pause waits before the n-th repetition.
func (t *table) pause(ctx context.Context, n int) error { return pause(ctx, n, t.life.Done()) }

func pause(ctx context.Context, n int, closed <-chan struct{}) error {
	if n < immediateTries {
		runtime.Gosched()
		return ctx.Err()
	}
	d := backoff.Doubled(minPause, n-immediateTries, maxPause)
	if n >= crowdedTries {
		d = backoff.Doubled(maxPause, (n-crowdedTries)/8+1, maxCrowdedPause)
	}
	timer := time.NewTimer(backoff.Jitter(d))
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
