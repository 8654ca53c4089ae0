package pawl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Once runs each task of a series on one instance, at most once or at least once: for
// example each tick of a schedule. A task has a key, and later tasks have greater keys.
// The name keeps the last key. A task counts as done unless its key is greater. So a late
// instance skips a task that another one has done. [Client.Once] returns one.
//
//   - By default a task runs at most once: the grant of the lock stores its key, before f
//     runs.
//   - [WithAtLeastOnce] runs it at least once: Do stores the key after f has returned
//     nil.
//   - To run it exactly once, keep its data in an SQL database: use WithAtLeastOnce, and
//     let f store the key in the transaction of its work, with CheckLease of
//     postgreslock, mysqllock or sqlitelock ([LeaseOf] finds the lease). f does nothing
//     if the key is already in the database.
//
// A task that failed is skipped for good once a later key is done. An instance whose
// clock is ahead runs a tick early, and then the tick is done for all: clocks must be
// right to within the interval of the schedule.
//
// The backend keeps the last key for a day, by default, after the end of the last lease
// on the name. An instance that comes after that day runs the task again.
// [Client.Inspect] shows the key as Entry.Value; [Client.List] does not list a name that
// only keeps a value. Give the name to one Once alone: another lock that writes a value
// there, such as an Election, makes Do skip or repeat tasks.
type Once struct {
	lock
	atLeastOnce, unordered bool
}

// Once returns the series of tasks with this name. It is a mutex of that name, with a
// value ([WithValue]): see [Client.Mutex] for names. Options are [WithAtLeastOnce],
// [WithUnorderedKeys] and the options of locks. Do refuses WithValue and WithValueBelow,
// because the name keeps the keys.
func (c *Client) Once(name string, options ...OnceOption) *Once {
	l := c.lock(name, nil)
	o := onceOptions{lockOptions: l.o}
	for _, option := range options {
		if option != nil {
			option.ofOnce(&o)
		}
	}
	l.o = o.lockOptions
	return &Once{l, o.atLeastOnce, o.unordered}
}

// WithAtLeastOnce makes a [Once] run a task until it is done: its function has returned
// nil under a lease that was not lost. So the task runs at least once. Other callers with
// the key wait meanwhile. If the function fails or its process dies, one of these callers
// runs it. Without WithAtLeastOnce a task runs at most once: its key counts as done as
// soon as the lock is granted, even if the function then fails or its process dies.
func WithAtLeastOnce() OnceOption { return onceOption(func(o *onceOptions) { o.atLeastOnce = true }) }

// WithUnorderedKeys is for a [Once] whose keys have no order: ids of messages or orders.
// The backend keeps each key separately: by default, for a day after the task. Functions
// with different keys run side by side. The name of the Once has 222 bytes at most,
// because each key adds 33.
func WithUnorderedKeys() OnceOption {
	return onceOption(func(o *onceOptions) { o.unordered = true })
}

// TimeKey returns the key of a scheduled time: t in UTC as text with nanoseconds, such as
// "2026-03-29T01:00:00.000000000Z". A later t has a greater key.
//
// All instances must pass the same t: the scheduled time, not time.Now() or a value of a
// time.Ticker. If a scheduler starts the job, round the present time to the schedule.
// Round, unlike Truncate, returns the same t for a clock that is slightly behind:
//
//	key := pawl.TimeKey(time.Now().Round(24 * time.Hour)) // of a job that starts at midnight, UTC
//
// After noon, this code computes the key of the next midnight. So a retry must keep the t
// of its first try, and a program that makes up for missed ticks must compute their
// times.
//
// For a schedule in local time, t is time.Date(year, month, day, 2, 30, 0, 0, location).
func TimeKey(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000000Z") }

// Do runs f unless the task of this key is done: unless the name keeps this key or a
// greater one. A key has 1 to 1024 bytes, compared as bytes; [TimeKey] makes one of a
// time. While another instance runs a task, Do waits, first come, first served among
// processes: so runs never overlap. ctx bounds the wait and is f's context, as in
// [Mutex.Do]; [WithWait] bounds the wait alone.
//
//   - (false, nil): the task is done. By default another instance may still be
//     running it.
//   - (false, err): f did not run, and it is not known whether the task is done. err
//     matches ErrHeld if a deadline or WithWait ended the wait, and ErrUnavailable
//     if the backend failed; other errors are errors of [Mutex.Lock].
//   - (true, err): f ran, and may have failed. err is the error of Mutex.Do. With
//     WithAtLeastOnce it may also say that the client could not store the key, so that
//     another instance may run the task again.
//
// Calling Do again with the same key is safe after any error.
func (o *Once) Do(ctx context.Context, key string, f func(ctx context.Context) error) (ran bool, err error) {
	return o.do(ctx, key, waiting, f)
}

// TryDo is Do without waiting. While another instance runs a task of the series, it
// returns (false, nil) if the task of this key is done, and otherwise an error that
// matches ErrHeld.
func (o *Once) TryDo(ctx context.Context, key string, f func(ctx context.Context) error) (ran bool, err error) {
	return o.do(ctx, key, trying, f)
}

func (o *Once) do(ctx context.Context, key string, m mode, f func(ctx context.Context) error) (ran bool, err error) {
	if o == nil {
		return false, errNotMade
	}
	if len(key) == 0 || len(key) > driver.MaxValue {
		return false, invalid("key", fmt.Sprintf("has %d bytes", len(key)), fmt.Sprintf("1 to %d bytes", driver.MaxValue))
	}
	switch {
	case o.o.value != nil: // the name keeps the last key
		return false, noEffectError("WithValue", "a Once", "for a mutex")
	case o.o.valueBelow != nil:
		return false, noEffectError("WithValueBelow", "a Once", "for a mutex")
	case f == nil:
		return false, errNoFunction
	}
	l, value := o.mutex(key)
	lease, err := l.acquire(ctx, driver.Exclusive, driver.Unlimited, m)
	if errors.Is(err, ErrValueNotBelow) {
		return false, nil
	}
	var keyErr error
	ran, err = do(ctx, lease, err, func(ctx context.Context) error {
		if err := f(ctx); err != nil || !o.atLeastOnce {
			return err
		}
		keyErr = lease.SetValue(context.WithoutCancel(ctx), value)
		return nil
	})
	if keyErr != nil && !errors.Is(err, ErrLost) {
		err = errors.Join(err, fmt.Errorf("pawl: %q has run, but its key could not be stored: %w", o.name, keyErr))
	}
	return ran, err
}

// LockName returns the name of the lock that Do acquires for a key, for [FenceOf],
// [LeaseOf] and [Client.Inspect]: the name of the Once, or with [WithUnorderedKeys] a
// name for each key.
func (o *Once) LockName(key string) string {
	if o == nil {
		return ""
	}
	l, _ := o.mutex(key)
	return l.shortName()
}

// mutex returns the lock to acquire for a key, and the value that marks the key as done.
func (o *Once) mutex(key string) (l lock, value []byte) {
	l, value = o.lock, []byte(key)
	if o.unordered {
		sum := sha256.Sum256(value)
		l.name, value = l.name+"#"+hex.EncodeToString(sum[:16]), []byte{1}
	}
	l.o.valueBelow = value
	if !o.atLeastOnce {
		l.o.value = value
	}
	return l, value
}
