package certtest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
)

// A Server requires certificates of its clients.
type Server struct {
	Identity *Identity
	Reload   func()                               // makes the server read its files again, and closes all connections
	Open     func(client *Identity) driver.Driver // opens a driver that is closed when the test ends
}

// Rotate replaces the certificates of a server, of the holder, and of a waiter. a is
// the authority of the server's first certificate.
func Rotate(tb TB, a *Authority, s Server) {
	tb.Helper()
	client := NewIdentity(tb, tb.TempDir(), a, "client")
	holder, waiter := s.Open(client), s.Open(client)
	held, waiting := servertest.Mutex("job"), servertest.Queued("job")
	first := servertest.Gets(tb, holder, held)
	servertest.Waits(tb, waiter, waiting)
	renew := func(ctx context.Context) error {
		answers, err := holder.Renew(ctx, []driver.LeaseRef{servertest.Lease(held)})
		return errors.Join(append(answers, err)...)
	}

	client.Expire(tb, a)
	s.Reload()
	until(tb, "the error says that the certificate has expired", func(ctx context.Context) (bool, error) {
		err := renew(ctx)
		if e, ok := errors.AsType[*driver.Error](err); ok && e.Permanent {
			tb.Fatalf("the error is permanent, although the certificate can be renewed: %v", err)
		}
		return err != nil && strings.Contains(err.Error(), "expired"), err
	})

	client.Replace(tb, a)
	until(tb, "the new certificate is used", func(ctx context.Context) (bool, error) {
		err := renew(ctx)
		return err == nil, err
	})

	b := NewAuthority(tb)
	s.Identity.Replace(tb, b)
	s.Reload()
	client.Replace(tb, b)
	until(tb, "the new authority is used", func(ctx context.Context) (bool, error) {
		err := renew(ctx)
		return err == nil, err
	})

	until(tb, "the lease is released", func(ctx context.Context) (bool, error) {
		err := holder.Release(ctx, servertest.Lease(held))
		return err == nil || errors.Is(err, driver.ErrNoSuchLease), err
	})
	until(tb, "the waiter gets the lock", func(ctx context.Context) (bool, error) {
		g, err := waiter.Acquire(ctx, waiting)
		if err == nil && g.Fence <= first.Fence {
			tb.Fatalf("the fence %d after %d", g.Fence, first.Fence)
		}
		return err == nil, err
	})
}

// until calls f until it returns true.
func until(tb TB, what string, f func(ctx context.Context) (bool, error)) {
	tb.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) { // only a hang takes so long
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		ok, err := f(ctx)
		cancel()
		if ok {
			return
		}
		if time.Now().After(end) {
			tb.Fatalf("this did not happen in time: %s: %v", what, err)
		}
	}
}
