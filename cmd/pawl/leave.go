package main

import (
	"context"
	"time"

	"github.com/pawl-go/pawl"
)

// sameSignalWithin is the time after a signal within which the next one counts as the
// same one: timeout(1) signals its command, and then the group.
const sameSignalWithin = 200 * time.Millisecond

// A keptError is the error of detach. The client still has the lease of another process,
// and would release it if it were closed. So nothing closes it, and it ends with pawl.
type keptError struct{ error }

func (e keptError) Unwrap() error { return e.error }

// detach detaches a lease of another process, after Attach.
func detach(ctx context.Context, l *pawl.Lease) error {
	if _, err := l.Detach(ctx); err != nil {
		return keptError{err}
	}
	return nil
}

// boundTheEnd bounds the rest of the job, because a signal has asked pawl to end.
func (j *job) boundTheEnd() { j.endBy = time.Now().Add(signalTimeout) }

// releaseAndClose releases the lease, if it is not nil, and closes the client, if it is
// not nil. Closing releases a place in the queue, or a grant that arrives late. The
// server may be gone, so after a signal this takes at most signalTimeout, and a second
// signal ends it at once. Leases and places that are left expire.
func (j *job) releaseAndClose(client *pawl.Client, lease jobLease, closeTimeout time.Duration) {
	if client == nil {
		return
	}
	released, gone := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(gone)
		switch {
		case lease == nil:
		case j.ran:
			released <- lease.Release(context.Background())
		default: // --min-hold does not apply
			released <- lease.ReleaseUnused(context.Background())
		}
		_ = closeWithin(client, closeTimeout)
	}()
	closed := j.await(gone)
	if lease == nil || j.reportedLost {
		return
	}
	select {
	case err := <-released:
		j.v.warnReleased(err)
	default:
		if !closed {
			j.v.warnNotReleased(j.name)
		}
	}
}

func (v *output) warnNotReleased(name string) {
	v.warn("the release of %q has no answer yet; the name may stay held until its lease expires", name)
}

// await waits until gone is closed, and reports whether it is. After a signal it waits
// until j.endBy, or until a second signal.
func (j *job) await(gone <-chan struct{}) bool {
	for !j.stopsWaiting {
		var late <-chan time.Time
		if !j.endBy.IsZero() {
			late = time.After(time.Until(j.endBy))
		}
		select {
		case <-gone:
			return true
		case <-late:
			j.stopsWaiting = true
		case s := <-j.signals:
			switch {
			case !asksToEnd(s):
			case j.endBy.IsZero():
				j.boundTheEnd()
			case time.Until(j.endBy) < signalTimeout-sameSignalWithin:
				j.stopsWaiting = true
			}
		}
	}
	return false
}
