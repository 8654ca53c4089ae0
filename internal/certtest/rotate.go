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
	Reload   func()                               // reloads the server's files and closes its connections
	Open     func(client *Identity) driver.Driver // opens a driver, and closes it at the end of the test
}

// Rotate replaces the certificates of a server, a holder and a waiter. a is the authority
// of the server's first certificate.
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
	until(tb, "the error of an expired certificate", func(ctx context.Context) (bool, error) {
		err := renew(ctx)
		if e, ok := errors.AsType[*driver.Error](err); ok && e.Permanent {
			tb.Fatalf("the error is permanent, but the certificate can be renewed: %v", err)
		}
		return err != nil && strings.Contains(err.Error(), "expired"), err
	})

	client.Replace(tb, a)
	until(tb, "a renewal with the new certificate", func(ctx context.Context) (bool, error) {
		err := renew(ctx)
		return err == nil, err
	})

	b := NewAuthority(tb)
	s.Identity.Replace(tb, b)
	s.Reload()
	client.Replace(tb, b)
	until(tb, "a renewal with the new authority", func(ctx context.Context) (bool, error) {
		err := renew(ctx)
		return err == nil, err
	})

	until(tb, "a release", func(ctx context.Context) (bool, error) {
		err := holder.Release(ctx, servertest.Lease(held))
		return err == nil || errors.Is(err, driver.ErrNoSuchLease), err
	})
	until(tb, "a grant for the waiter", func(ctx context.Context) (bool, error) {
		g, err := waiter.Acquire(ctx, waiting)
		if err == nil && g.Fence <= first.Fence {
			tb.Fatalf("fence %d after %d", g.Fence, first.Fence)
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
			tb.Fatalf("no success in time: %s: %v", what, err)
		}
	}
}
