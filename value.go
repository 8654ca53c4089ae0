package pawl

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// WithValue makes the name keep a value of at most 1 KB, such as a leader's address or
// the last tick of a schedule. The step that grants the lock writes the value. The name
// keeps it, even when the name is not held, until a later holder writes another. The
// backend forgets name and value, by default, a day after the end of the last lease.
// Inspect shows the value.
//
// A lock with a value is not passed among the waiters of one process (see
// Options.HandoffWindow): the backend makes each grant.
func WithValue(value []byte) LockOption {
	return lockOption(func(o *lockOptions) { o.value = bytes.Clone(orEmpty(value)) })
}

// WithAbove makes the grant depend on the value that the name keeps: the name must keep
// no value, or a smaller one, compared as bytes. Otherwise the error matches
// ErrValueNotGreater. The backend compares and grants in one step, so together with
// [WithValue] each value is written once, by one holder. For a waiter it compares when
// the waiter's turn comes, and maybe before.
func WithAbove(value []byte) LockOption {
	return lockOption(func(o *lockOptions) { o.above = bytes.Clone(orEmpty(value)) })
}

// orEmpty returns value, but never nil, because nil means no value to the driver.
func orEmpty(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}

// writes is the state of the hold's writes. It is made when the first value is written.
func (h *hold) writes() *lastWrite {
	if w := h.written.Load(); w != nil {
		return w
	}
	h.written.CompareAndSwap(nil, &lastWrite{turn: make(chan struct{}, 1)})
	return h.written.Load()
}

// write takes the turn to write, and waits until no earlier write can arrive any more.
// The caller ends the turn with done.
func (l *Lease) write(ctx context.Context) (*lastWrite, error) {
	w := l.h.writes()
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	err := l.sleep(ctx, time.Until(w.end))
	if err == nil {
		err = l.Err() // the lease may have been detached meanwhile
	}
	if err != nil {
		w.done()
		return nil, err
	}
	return w, nil
}

func (w *lastWrite) done() { <-w.turn }

// SetValue makes the name keep another value, at most 1 KB, and renews the lease. Only a
// holder can write a name's value. See [WithValue].
//
// ctx bounds the call. The error matches ErrLost or ErrReleased if the lease is over;
// then nothing is written. It matches ErrUnavailable, or ctx's own error, if it is not
// known whether the value was written. The next SetValue of this lease then waits until
// the unanswered write cannot arrive any more, so that an earlier value never overwrites
// a later one.
func (l *Lease) SetValue(ctx context.Context, value []byte) error {
	value = bytes.Clone(orEmpty(value))
	if err := driver.ValidateValue(value); err != nil {
		return err
	}
	return l.ask(ctx, "write the value of", value)
}

// Confirm asks the backend whether the lease still holds the name, and renews it. Confirm
// returns nil if the lease does. The error matches ErrLost or ErrReleased if the lease is
// over. It matches ErrUnavailable, or ctx's own error, if Confirm cannot find out; the
// lease then goes on until its Deadline.
//
// Call it right before something that cannot be undone. It takes a round trip, where Err
// takes none, and detects what the backend has not reported yet: a ForceLock, a Break
// with a negative Delay, an entry that was deleted by hand. Its answer does not hold
// until a commit, because the process may pause in between: in a transaction use
// CheckLease of postgreslock, mysqllock or sqlitelock.
func (l *Lease) Confirm(ctx context.Context) error { return l.ask(ctx, "renew", nil) }

// ask renews the lease by itself, with or without a value to write.
func (l *Lease) ask(ctx context.Context, op Op, value []byte) error {
	if err := l.Err(); err != nil {
		return err
	}
	h, c := l.h, l.h.c
	if err := c.checkOpen(ctx); err != nil {
		return err
	}
	if value != nil {
		w, err := l.write(ctx)
		if err != nil {
			return err
		}
		defer w.done()
	}
	if !c.releases.enter() { // as a Release does, so that Close waits for this call
		return ErrClosed
	}
	defer c.releases.leave()
	sent := c.now()
	ref := h.renewalRef(sent)
	ref.Value, ref.TTL = value, max(ref.TTL, driver.MinTTL) // near the end of a maximum hold, ref.TTL may be less
	attempt := c.settings.attempt(ctx, nil, h.claim.TTL, sent.Mono)
	defer attempt.Cancel()
	answers, err := c.driver.Renew(attempt, []driver.LeaseRef{ref})
	if err == nil && len(answers) == 1 {
		err = answers[0]
	}
	switch {
	case err == nil:
		h.renewed(sent, c.now(), ref.TTL, nil)
		return l.Err()
	case errors.Is(err, driver.ErrNoSuchLease):
		h.lose(notHeld(sent.Mono, err))
		return l.Err()
	case errors.Is(err, ErrInvalid) || errors.Is(err, ErrClosed):
		return err
	}
	if value != nil {
		h.writes().end = attempt.Ends().Add(driver.MaxLead)
	}
	if ended := ended(ctx); ended != nil {
		return ended
	}
	return unavailable(c.backend, op, h.claim.Name, err)
}

// sleep waits for d, while the lease holds and ctx lasts.
func (l *Lease) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-l.Done():
		return l.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
