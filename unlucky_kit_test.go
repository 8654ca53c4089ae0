package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

var errBug = errors.New("a bug")

// unlucky is the bad luck of the crowd of one process: its driver and its Observer fail
// and panic, and each waiter may give up at any time.
type unlucky struct{ *dice }

// step takes up to 300 µs, and fails or panics now and then.
func (u *unlucky) step(op string) error {
	time.Sleep(time.Duration(u.n(300)) * time.Microsecond)
	switch r := u.n(100); {
	case r < 3 && op == "acquire": // the others may be sent by the client itself, where a panic ends the program
		panic(errBug)
	case r < 6:
		return errNet
	}
	return nil
}

// visit locks once, in some way, and works for a while. It recovers from the panics that
// it makes.
func (u *unlucky) visit(t *testing.T, c *pawl.Client, b *believers) {
	defer func() {
		if r := recover(); r != nil && r != errBug {
			panic(r)
		}
	}()
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	if u.n(2) == 0 {
		time.AfterFunc(time.Duration(u.n(5000))*time.Microsecond, cancel)
	}
	var l *pawl.Lease
	var err error
	weight := driver.Exclusive
	switch r := u.n(20); {
	case r == 0:
		l, err = c.Mutex("x").TryLock(ctx)
	case r == 1:
		weight = 1
		l, err = c.RWMutex("x").RLock(ctx)
	case r == 2:
		l, err = c.Mutex("x", pawl.WithTTL(time.Minute)).Lock(ctx)
	default:
		l, err = c.Mutex("x").Lock(ctx)
	}
	if err != nil {
		return
	}
	b.mu.Lock()
	b.leases = append(b.leases, believer{l, weight, driver.Unlimited})
	b.mu.Unlock()
	b.look(t)
	time.Sleep(time.Duration(u.n(500)) * time.Microsecond)
	b.look(t)
	if err := l.Release(ctx); err != nil && !errors.Is(err, pawl.ErrLost) && !errors.Is(err, pawl.ErrUnavailable) {
		t.Errorf("release: %v", err)
	}
}
