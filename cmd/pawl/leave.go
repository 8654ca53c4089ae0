package main

import (
	"context"
	"time"

	"github.com/pawl-go/pawl"
)

// sameSignalWindow is the time after a signal in which another one counts as the same
// one: timeout(1) signals its command, and then the group.
const sameSignalWindow = 200 * time.Millisecond

// A notDetachedError is the error of detach. The client still has the lease of another
// process, and Close would release it. So pawl never closes this client.
type notDetachedError struct{ error }

func (e notDetachedError) Unwrap() error { return e.error }

// detach detaches a lease of another process, after Attach.
func detach(ctx context.Context, l *pawl.Lease) error {
	if _, err := l.Detach(ctx); err != nil {
		return notDetachedError{err}
	}
	return nil
}

// startEndTimeout limits the time for the rest of the job, after a signal that ends it.
func (j *job) startEndTimeout() { j.endBy = time.Now().Add(signalTimeout) }

// releaseAndClose releases the lease, if it is not nil, and closes the client, if it is
// not nil. Closing releases a place in the queue, or a grant that arrives late. The
// server may be gone, so after a signal this takes at most signalTimeout, and a second
// signal ends it at once. Leases and places that are left expire.
func (j *job) releaseAndClose(client *pawl.Client, lease jobLease, closeTimeout time.Duration) {
	if client == nil {
		return
	}
	released, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		switch {
		case lease == nil:
		case j.started:
			released <- lease.Release(context.Background())
		default: // --min-hold does not apply
			released <- lease.ReleaseUnused(context.Background())
		}
		_ = closeWithin(client, closeTimeout)
	}()
	closed := j.await(done)
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

// await waits until done is closed, and reports whether it is. After a signal it waits
// until j.endBy, or until a second signal.
func (j *job) await(done <-chan struct{}) bool {
	for !j.stopsWaiting {
		var timeout <-chan time.Time
		if !j.endBy.IsZero() {
			timeout = time.After(time.Until(j.endBy))
		}
		select {
		case <-done:
			return true
		case <-timeout:
			j.stopsWaiting = true
		case s := <-j.signals:
			switch {
			case !asksToEnd(s):
			case j.endBy.IsZero():
				j.startEndTimeout()
			case time.Until(j.endBy) < signalTimeout-sameSignalWindow:
				j.stopsWaiting = true
			}
		}
	}
	return false
}
