package worker

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/driver"
)

func releaseAllHolders(ctx context.Context, w *buggyDriver, l driver.LeaseRef, n int64) error {
	err := w.Driver.Release(ctx, l)
	breaker, can := driver.As[driver.LeaseBreaker](w.Driver)
	if !can || !errors.Is(err, driver.ErrNoSuchLease) && n%20 != 0 {
		return err
	}
	e, _ := w.Driver.Inspect(ctx, l.Name)
	for _, h := range e.Holders {
		_ = breaker.Break(ctx, l.Name, h.Fence, 0, driver.Owner{Client: "planted"})
	}
	return err
}

func releaseNothing(ctx context.Context, w *buggyDriver, l driver.LeaseRef, n int64) error {
	if n%10 == 0 {
		return nil
	}
	return w.Driver.Release(ctx, l)
}

func renewHalf(ctx context.Context, w *buggyDriver, leases []driver.LeaseRef) ([]error, error) {
	answers := make([]error, len(leases))
	for i, l := range leases {
		if l.Token[0]%2 == 0 {
			continue
		}
		a, err := w.Driver.Renew(ctx, []driver.LeaseRef{l})
		if err != nil {
			return nil, err
		}
		answers[i] = a[0]
	}
	return answers, nil
}

func claimThirdOfTTL(c *driver.Claim, _ int64) { c.TTL = max(c.TTL/3, driver.MinTTL) }

func renewThirdOfTTL(ctx context.Context, w *buggyDriver, leases []driver.LeaseRef) ([]error, error) {
	for i := range leases {
		leases[i].TTL = max(leases[i].TTL/3, driver.MinTTL)
	}
	return w.Driver.Renew(ctx, leases)
}

func grantRefusal(_ *buggyDriver, c driver.Claim, err error, n int64) (driver.Grant, error) {
	if n%30 == 0 {
		return driver.Grant{Fence: uint64(time.Now().UnixMicro()), Fences: 1, TTL: c.TTL}, nil
	}
	return driver.Grant{}, err
}

// refuseForAMinute makes Acquire repeat the refusal of a claim for a minute.
func refuseForAMinute(w *buggyDriver, c driver.Claim, err error, _ int64) (driver.Grant, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuse[c.Token] = refused{time.Now().Add(time.Minute), err}
	return driver.Grant{}, err
}

func tryAgainSoon(_ *buggyDriver, _ driver.Claim, err error, _ int64) (driver.Grant, error) {
	if held, is := errors.AsType[*driver.HeldError](err); is {
		held.RetryAfter, held.Position = 20*time.Millisecond, 1
	}
	return driver.Grant{}, err
}

func releaseWithContext(ctx context.Context, w *buggyDriver, c driver.Claim) {
	context.AfterFunc(ctx, func() {
		_ = w.Driver.Release(context.Background(), driver.LeaseRef{Name: c.Name, Token: c.Token})
	})
}

// lateLease shows its holder the loss after a delay.
type lateLease struct {
	Lease
	delay time.Duration
	over  time.Time // of the first Err that found the lease over
}

func (l *lateLease) Err() error {
	err := l.Lease.Err()
	switch {
	case err == nil:
	case l.over.IsZero():
		l.over = time.Now()
		return nil
	case time.Since(l.over) < l.delay:
		return nil
	}
	return err
}

func (*lateLease) Done() <-chan struct{} { return nil }

// lockFirst locks the first of the names, and returns leases for all.
func (p *pawlClient) lockFirst(ctx context.Context, names []history.Name) ([]Lease, error) {
	first, err := p.lock(names[0], history.Whole, 1).Lock(ctx)
	if err != nil {
		return nil, err
	}
	leases := []Lease{first}
	for range names[1:] {
		leases = append(leases, ungrantedLease{first})
	}
	return leases, nil
}

// ungrantedLease is a lease that the backend has not granted.
type ungrantedLease struct{ Lease }

func (ungrantedLease) Fence() uint64 { return uint64(time.Now().UnixMicro()) }
