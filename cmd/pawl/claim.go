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

// claim opens the backend and waits for the lock, no longer than j.maxWait. If the
// backend ignores the end of its ctx, for example while it waits for a disk, claim
// returns lateAnswerTimeout later. A signal ends the wait. A signal at the moment of the
// grant stays in j.signals, for hold.
func (j *job) claim() (*pawl.Client, jobLease, error) {
	ctx, cancel := context.WithCancel(context.Background())
	if j.maxWait > 0 {
		ctx, cancel = context.WithTimeout(context.Background(), j.maxWait)
	}
	defer cancel()
	var client *pawl.Client
	var lease jobLease
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if client, err = j.open(ctx); err == nil {
			if lease, err = j.acquire(ctx, client); err != nil {
				lease = nil // a nil interface, not a nil of a concrete type
			}
			if _, notDetached := errors.AsType[notDetachedError](err); notDetached {
				client = nil
			}
		}
	}()

	ctxDone := ctx.Done()
	var answerTimeout <-chan time.Time
	for {
		select {
		case <-ended:
			return client, lease, j.claimError(deadlinePassed(ctx), err)
		case <-ctxDone:
			ctxDone, answerTimeout = nil, time.After(lateAnswerTimeout)
		case <-answerTimeout: // the goroutine goes on, and ends with pawl
			return nil, nil, j.claimError(true, context.DeadlineExceeded)
		case s := <-j.signals:
			cancel()
			j.startEndTimeout()
			released := make(chan struct{})
			go func() {
				defer close(released)
				if <-ended; lease != nil {
					j.releaseUnused(lease)
				}
			}()
			if !j.await(released) {
				return nil, nil, stoppedBy(s)
			}
			return client, nil, stoppedBy(s) // the caller closes it
		}
	}
}

// deadlinePassed reports whether the deadline of ctx has passed. It does not use ctx.Err,
// because the same deadline on a socket may fire before the timer of ctx.
func deadlinePassed(ctx context.Context) bool {
	deadline, bounded := ctx.Deadline()
	return bounded && !time.Now().Before(deadline)
}

// claimError returns the exit error of a failed claim. timedOut means that j.maxWait has
// passed. Other timeouts, such as a backend's dial timeout, are like any other error.
func (j *job) claimError(timedOut bool, err error) error {
	held, isHeld := errors.AsType[*pawl.HeldError](err)
	switch {
	case err == nil:
		return nil
	case isHeld && j.noWait:
		return &exit{code: exitHeld, err: notAcquiredError{errors.New(words.ErrorText(held))}}
	case isHeld:
		return &exit{code: exitHeld, err: notAcquiredError{fmt.Errorf("gave up after %v: %s", j.maxWait, words.ErrorText(held))}}
	case timedOut && errors.Is(err, context.DeadlineExceeded):
		why := "the database did not answer; try pawl doctor"
		if driverErr, ok := errors.AsType[*driver.Error](err); ok {
			why = words.ErrorText(driverErr)
		} else if text := words.ErrorText(err); text != context.DeadlineExceeded.Error() {
			why = text
		}
		return &exit{code: exitUnavailable, err: fmt.Errorf("gave up on %q after %v: %s", j.name, j.maxWait, why)}
	}
	return &exit{code: codeOf(err), err: err}
}

// errNotAcquired matches the failures for which -E sets the exit code.
var errNotAcquired = errors.New("not acquired")

// notAcquiredError matches errNotAcquired, and has the text of its cause.
type notAcquiredError struct{ error }

func (notAcquiredError) Is(target error) bool { return target == errNotAcquired }

// releaseUnused releases a lease under which no command has run.
func (j *job) releaseUnused(lease jobLease) {
	if err := lease.ReleaseUnused(context.Background()); err != nil && !errors.Is(err, pawl.ErrLost) {
		j.v.warn("%s; the name stays held until its lease expires", words.ErrorText(err))
	}
}
