package uses_test

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/pawl-go/pawl/driver"
)

// full is the interface of all drivers in these tests, as far as Once uses it.
type full interface {
	driver.Driver
	driver.Signaler
}

// A mortal is a driver that can die, like the driver of a killed process: its earlier
// requests still take effect, and it sends no later ones.
type mortal struct {
	full
	granted func() (dies bool) // called when the driver is granted a lock
	dead    atomic.Bool
}

var errDead = errors.New("this process is dead")

func (m *mortal) die() { m.dead.Store(true) }

func (m *mortal) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if m.dead.Load() {
		return driver.Grant{}, errDead
	}
	g, err := m.full.Acquire(ctx, c)
	if err == nil && m.granted() {
		m.die()
		return driver.Grant{}, errDead
	}
	return g, err
}

func (m *mortal) Renew(ctx context.Context, l []driver.LeaseRef) ([]error, error) {
	if m.dead.Load() {
		return nil, errDead
	}
	return m.full.Renew(ctx, l)
}

func (m *mortal) Release(ctx context.Context, l driver.LeaseRef) error {
	if m.dead.Load() {
		return errDead
	}
	return m.full.Release(ctx, l)
}

func (m *mortal) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	if m.dead.Load() {
		return driver.Entry{}, errDead
	}
	return m.full.Inspect(ctx, name)
}

func (m *mortal) Listen(f func(driver.Signal)) (stop func()) {
	return m.full.Listen(func(s driver.Signal) {
		if s.Kind == driver.SignalGranted && m.granted() {
			m.die()
		}
		if !m.dead.Load() {
			f(s)
		}
	})
}
