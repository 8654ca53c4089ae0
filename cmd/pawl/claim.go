package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/driver"
)

// How long a backend is waited for that does not answer.
const (
	tryPatience = 3 * time.Second        // with -n, which is for a lock that is held
	straggle    = 500 * time.Millisecond // when our time is up: it may be about to say who holds the lock
	lastWords   = 3 * time.Second        // to take back what is on its way
)

// A claimed is how claiming the lock ended.
type claimed struct {
	client *pawl.Client
	lease  jobLease
	err    error
}

// claim opens the backend and waits for the lock, for no longer than our patience:
// neither may know of a ctx in all that it does, such as waiting for a disk. A signal
// ends the wait, and is never lost: one that comes in the instant of the grant stays in
// j.signals, for hold.
func (j *job) claim() (*pawl.Client, jobLease, error) {
	ctx, cancel := context.WithCancel(context.Background())
	if j.patience > 0 {
		ctx, cancel = context.WithTimeout(context.Background(), j.patience)
	}
	defer cancel()
	got := make(chan claimed, 1)
	go func() {
		var a claimed
		if a.client, a.err = j.open(ctx); a.err == nil {
			a.lease, a.err = j.acquire(ctx, a.client)
			if a.err != nil {
				a.lease = nil // and no nil of a type
			}
		}
		got <- a
	}()

	late := ctx.Done()
	var over <-chan time.Time
	for {
		select {
		case a := <-got:
			return a.client, a.lease, j.refused(isOver(ctx), a.err)
		case <-late:
			late, over = nil, time.After(straggle)
		case <-over: // it is left behind, and ends with us
			return nil, nil, j.refused(true, context.DeadlineExceeded)
		case s := <-j.signals:
			cancel()
			return j.interrupted(got), nil, stoppedBy(s)
		}
	}
}

// interrupted waits for the end of a claim that a signal has ended. It does not, when a
// second one comes: at once, whatever is left behind until it expires.
func (j *job) interrupted(got chan claimed) *pawl.Client {
	select {
	case a := <-got:
		if a.lease != nil {
			j.letGo(a.lease)
		}
		return a.client
	case <-j.signals:
	case <-time.After(lastWords):
	}
	return nil
}

// goodbye is how long the closing may take. Who has waited as long as they said shall not
// wait much longer.
func (j *job) goodbye(claimed error) time.Duration {
	if claimed != nil && j.patience > 0 {
		return straggle
	}
	return lastWords
}

// isOver reports whether the deadline of ctx has passed. A socket's deadline, which is
// the same, may be quicker than the timer of ctx.
func isOver(ctx context.Context) bool {
	deadline, bounded := ctx.Deadline()
	return bounded && !time.Now().Before(deadline)
}

// refused makes the error of a claim ours; over is whether our patience is. A backend has
// bounds of its own, such as that of a dial, whose end is an error like any other.
func (j *job) refused(over bool, err error) error {
	held, isHeld := errors.AsType[*pawl.HeldError](err)
	switch {
	case err == nil:
		return nil
	case isHeld && j.try:
		return &exit{code: exitHeld, err: notAcquiredError{errors.New(words.Bare(held))}}
	case isHeld:
		return &exit{code: exitHeld, err: notAcquiredError{fmt.Errorf("gave up after %v: %s", j.patience, words.Bare(held))}}
	case over && errors.Is(err, context.DeadlineExceeded):
		why := "the database did not answer; try pawl doctor"
		if trouble, ok := errors.AsType[*driver.Error](err); ok {
			why = words.Bare(trouble)
		} else if said := words.Bare(err); said != context.DeadlineExceeded.Error() {
			why = said
		}
		return &exit{code: exitUnavailable, err: fmt.Errorf("gave up on %q after %v: %s", j.name, j.patience, why)}
	}
	return &exit{code: codeOf(err), err: err}
}

// errNotAcquired marks the failures whose exit code is -E's.
var errNotAcquired = errors.New("not acquired")

// notAcquiredError Is errNotAcquired, and reads as its cause.
type notAcquiredError struct{ error }

func (notAcquiredError) Is(target error) bool { return target == errNotAcquired }

// letGo releases a lease under which nothing has run.
func (j *job) letGo(lease jobLease) {
	if err := releaseNow(lease); err != nil && !errors.Is(err, pawl.ErrLost) {
		j.v.warn("%s; the name stays held until its lease expires", words.Bare(err))
	}
}
