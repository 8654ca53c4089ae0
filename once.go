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

// Once runs each of a row of tasks on one instance: the ticks of a schedule, say. A task
// has a key, and is done when its key, or a greater one, has been. The name of the lock
// keeps the last key, so an instance that is late is told that its tick is done, however
// late it is. An instance whose clock is ahead does a tick early, and then it is done for
// all: clocks have to be right to within the interval of the schedule. [Client.Once]
// makes one.
//
// The last key is kept for as long as the backend remembers a name: by default, a day
// after the end of the last lease on it, so however long its function ran. The name is
// for one Once alone: another holder that writes a value there, an Election say, would
// spend its keys or have them done again.
type Once struct {
	lock
	untilDone, unordered bool
}

// Once returns the tasks of a name. It is a mutex of that name, with a value
// ([WithValue]): see [Client.Mutex] for names. Options for it are [WithUntilDone] and
// [WithUnorderedKeys]. Do refuses WithValue and WithAbove: the name keeps the keys.
func (c *Client) Once(name string, options ...OnceOption) *Once {
	l := c.lock(name, nil)
	o := onceOptions{lockOptions: l.o}
	for _, option := range options {
		if option != nil {
			option.ofOnce(&o)
		}
	}
	l.o = o.lockOptions
	return &Once{l, o.untilDone, o.unordered}
}

// WithUntilDone has a [Once] run a task until it is done. Without it, a key is done when
// the lock is granted for it, right before its function runs: at most once, also if that
// function fails, or its process dies in that instant. With it, a key is done when its
// function has returned nil under a lease that was not lost: at least once. Others who
// were called with the key wait meanwhile, and one of them takes it up if the function
// fails or its process dies.
func WithUntilDone() OnceOption { return onceOption(func(o *onceOptions) { o.untilDone = true }) }

// WithUnorderedKeys is for a [Once] whose keys have no order: ids of messages or orders.
// Each key is remembered by itself, for as long as the backend remembers a name that is
// not in use: a day by default. Functions with different keys run side by side. The name
// of the Once has 222 bytes at most, because 33 are added to it for each key.
func WithUnorderedKeys() OnceOption {
	return onceOption(func(o *onceOptions) { o.unordered = true })
}

// TimeKey is the key of a scheduled time: the later the time, the greater the key.
func TimeKey(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000000Z") }

// Do runs f if no instance has done this key, or a greater one, and says whether it ran.
// Keys are compared as bytes, and have 1 to 1024 of them; [TimeKey] makes one of a time.
// While another instance is at this key or an earlier one, Do waits for it, first come,
// first served among processes: so runs never overlap. ctx bounds the wait, and f's
// context is as that of [Mutex.Do].
//
// It returns (false, nil) if the key is done; nobody has to do anything then. If err is
// not nil and ran is false, nobody knows that: the backend is down (ErrUnavailable), or
// ctx ended while another instance was at work (it matches ErrHeld then). An error with
// ran is f's own, or matches ErrLost as with Mutex.Do, or, with WithUntilDone, says that
// it could not be noted that the key is done, so that another instance may do it again.
func (o *Once) Do(ctx context.Context, key string, f func(ctx context.Context) error) (ran bool, err error) {
	return o.do(ctx, key, waiting, f)
}

// TryDo is Do without waiting: if another instance is at work, the error matches ErrHeld.
func (o *Once) TryDo(ctx context.Context, key string, f func(ctx context.Context) error) (ran bool, err error) {
	return o.do(ctx, key, trying, f)
}

func (o *Once) do(ctx context.Context, key string, m mode, f func(ctx context.Context) error) (ran bool, err error) {
	if o == nil {
		return false, errNotMade
	}
	if len(key) == 0 || len(key) > driver.MaxValue {
		return false, &InvalidError{What: "key", Problem: fmt.Sprintf("has %d bytes", len(key)), Allowed: fmt.Sprintf("1 to %d bytes", driver.MaxValue)}
	}
	if err := o.keepsKeys(); err != nil {
		return false, err
	}
	if f == nil {
		return false, errNoFunction
	}
	l, value := o.mutex(key)
	lease, err := l.acquire(ctx, driver.Exclusive, driver.Unlimited, m)
	if errors.Is(err, ErrValue) {
		return false, nil
	}
	var note error
	ran, err = do(ctx, lease, err, func(ctx context.Context) error {
		if err := f(ctx); err != nil || !o.untilDone {
			return err
		}
		note = lease.SetValue(context.WithoutCancel(ctx), value)
		return nil
	})
	if note != nil && !errors.Is(err, ErrLost) {
		err = errors.Join(err, fmt.Errorf("pawl: %q has run, and that could not be noted: %w", o.name, note))
	}
	return ran, err
}

// keepsKeys refuses a value of the caller's own: the name keeps the last key.
func (o *Once) keepsKeys() error {
	switch {
	case o.o.value != nil:
		return pointless("WithValue", "a Once", "for a mutex")
	case o.o.above != nil:
		return pointless("WithAbove", "a Once", "for a mutex")
	}
	return nil
}

// LockName returns the name of the lock that Do acquires for a key, for [FenceOf] and
// [Client.Inspect]: the name of the Once; with [WithUnorderedKeys], a name of the key's
// own.
func (o *Once) LockName(key string) string {
	if o == nil {
		return ""
	}
	l, _ := o.mutex(key)
	return l.inner()
}

// mutex is what is claimed for a key, and the value that says that the key is done.
func (o *Once) mutex(key string) (l lock, value []byte) {
	l, value = o.lock, []byte(key)
	if o.unordered {
		sum := sha256.Sum256(value)
		l.name, value = l.name+"#"+hex.EncodeToString(sum[:16]), []byte{1}
	}
	l.o.above = value
	if !o.untilDone {
		l.o.value = value
	}
	return l, value
}
