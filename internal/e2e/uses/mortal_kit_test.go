package uses_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// full is the interface of all drivers in these tests, as far as a client uses it. The
// tests do not cover the doctor and quorums.
type full interface {
	driver.Driver
	driver.Signaler
	driver.Watcher
	driver.AllAcquirer
	driver.Lister
	driver.LeaseBreaker
}

// A mortal is a driver that can die, like the driver of a killed process: its earlier
// requests still take effect, and it sends no later ones. It counts its requests.
type mortal struct {
	full
	granted  func() (dies bool) // if not nil, called when the driver is granted a lock
	dead     atomic.Bool
	requests atomic.Int64 // requests that began
	answered atomic.Int64 // claims with an answer: the lock or a place in the queue
}

var errDead = errors.New("this process is dead")

func (b *backend) mortal(t testing.TB, o *pawl.Options) (*pawl.Client, *mortal) {
	t.Helper()
	m := &mortal{full: b.open(t, "locks").(full)}
	return clientOf(t, m, o), m
}

func (m *mortal) die() { m.dead.Store(true) }

func (m *mortal) ask() error {
	m.requests.Add(1)
	if m.dead.Load() {
		return errDead
	}
	return nil
}

func (m *mortal) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := m.ask(); err != nil {
		return driver.Grant{}, err
	}
	defer m.answered.Add(1)
	g, err := m.full.Acquire(ctx, c)
	if err == nil && m.granted != nil && m.granted() {
		m.die()
		return driver.Grant{}, errDead
	}
	return g, err
}

func (m *mortal) AcquireAll(ctx context.Context, claims []driver.Claim) ([]driver.Grant, error) {
	if err := m.ask(); err != nil {
		return nil, err
	}
	defer m.answered.Add(1)
	grants, err := m.full.AcquireAll(ctx, claims)
	if err == nil && m.granted != nil && m.granted() {
		m.die()
		return nil, errDead
	}
	return grants, err
}

func (m *mortal) Renew(ctx context.Context, l []driver.LeaseRef) ([]error, error) {
	if err := m.ask(); err != nil {
		return nil, err
	}
	return m.full.Renew(ctx, l)
}

func (m *mortal) Release(ctx context.Context, l driver.LeaseRef) error {
	if err := m.ask(); err != nil {
		return err
	}
	return m.full.Release(ctx, l)
}

func (m *mortal) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	if err := m.ask(); err != nil {
		return driver.Entry{}, err
	}
	return m.full.Inspect(ctx, name)
}

func (m *mortal) Listen(f func(driver.Signal)) (stop func()) {
	return m.full.Listen(func(s driver.Signal) {
		if s.Kind == driver.SignalGranted && m.granted != nil && m.granted() {
			m.die()
		}
		if !m.dead.Load() {
			f(s)
		}
	})
}

func (m *mortal) Watch(name string, f func()) (stop func()) {
	return m.full.Watch(name, func() {
		if !m.dead.Load() {
			f()
		}
	})
}

func (m *mortal) List(ctx context.Context, prefix string) iter.Seq2[driver.Entry, error] {
	if err := m.ask(); err != nil {
		return func(yield func(driver.Entry, error) bool) { yield(driver.Entry{}, err) }
	}
	return m.full.List(ctx, prefix)
}

func (m *mortal) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
	if err := m.ask(); err != nil {
		return err
	}
	return m.full.Break(ctx, name, fence, delay, by)
}
