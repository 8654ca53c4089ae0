package redistest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// Check tests a driver during a bad day of a server that Start started. While the server
// refuses requests, each step returns an error that wraps the server's error, no claim is
// granted, and no holder concludes that its lease is lost. After the day, held names are
// still held, and the others are free. meanwhile, if not nil, is another step that the
// server refuses.
func (b *BadDay) Check(tb TB, d driver.Driver, s *Server, meanwhile func(context.Context) error) {
	tb.Helper()
	job, book, fresh := claim("job"), claim("book"), claim("fresh")
	book.Weight = 1
	for _, step := range []func(context.Context) error{acquire(d, job), acquire(d, book), renew(d, job)} {
		if err := bounded(step); err != nil {
			tb.Fatalf("before: %v", err)
		}
	}
	first := fence(tb, d, job.Name)

	b.Begin(s)
	b.checkRefusal(tb, "acquire", acquire(d, fresh))
	fresh.Queue, fresh.QueueTTL = true, time.Minute
	b.checkRefusal(tb, "acquire, and wait", acquire(d, fresh))
	if meanwhile != nil {
		b.checkRefusal(tb, "meanwhile", meanwhile)
	}
	if b.AllowsRenewals {
		if err := errors.Join(bounded(renew(d, job)), bounded(renew(d, book))); err != nil {
			tb.Errorf("renew: %v; want both renewed", err)
		}
	} else {
		b.checkRefusal(tb, "renew", renew(d, job))
		b.checkRefusal(tb, "renew the shared lease", renew(d, book))
		b.checkRefusal(tb, "release", release(d, job))
	}
	b.End(s)

	recovers(tb, renew(d, job))
	recovers(tb, renew(d, book))
	recovers(tb, acquire(d, job))
	if now := fence(tb, d, job.Name); now != first {
		tb.Errorf("fence %d, want %d as before", now, first)
	}
	if err := bounded(acquire(d, claim("job"))); !errors.Is(err, driver.ErrHeld) {
		tb.Errorf("%v; want ErrHeld", err)
	}
	if f := fence(tb, d, fresh.Name); f != 0 {
		tb.Errorf("the refused claim has the fence %d", f)
	}
	next := claim("job")
	if err := errors.Join(bounded(release(d, job)), bounded(acquire(d, next))); err != nil {
		tb.Errorf("after: %v", err)
	}
	if now := fence(tb, d, job.Name); now <= first {
		tb.Errorf("fence %d after %d", now, first)
	}
}

func claim(name string) driver.Claim {
	return driver.Claim{Name: name, Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: time.Minute}
}

func acquire(d driver.Driver, c driver.Claim) func(context.Context) error {
	return func(ctx context.Context) error { _, err := d.Acquire(ctx, c); return err }
}

func renew(d driver.Driver, c driver.Claim) func(context.Context) error {
	return func(ctx context.Context) error {
		answers, err := d.Renew(ctx, []driver.LeaseRef{{Name: c.Name, Token: c.Token, TTL: c.TTL}})
		return errors.Join(append(answers, err)...)
	}
}

func release(d driver.Driver, c driver.Claim) func(context.Context) error {
	return func(ctx context.Context) error { return d.Release(ctx, driver.LeaseRef{Name: c.Name, Token: c.Token}) }
}

// bounded runs a step with a timeout that only a hanging step reaches.
func bounded(step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return step(ctx)
}

// fence returns the last fence of a name.
func fence(tb TB, d driver.Driver, name string) (f uint64) {
	tb.Helper()
	err := bounded(func(ctx context.Context) error {
		e, err := d.Inspect(ctx, name)
		f = e.Fence
		return err
	})
	if err != nil {
		tb.Fatalf("Inspect: %v", err)
	}
	return f
}

// checkRefusal requires that a step returns the error of the day. The first attempts may
// fail because a connection is closed, or no process listens.
func (b *BadDay) checkRefusal(tb TB, what string, step func(context.Context) error) {
	tb.Helper()
	var err error
	for range 200 {
		err = bounded(step)
		e, ok := errors.AsType[*driver.Error](err)
		if !ok || !errors.Is(err, driver.ErrUnavailable) || e.Err == nil || !strings.HasPrefix(e.Backend, "redis ") {
			tb.Fatalf("%s: %v; want a *driver.Error with its cause", what, err)
		}
		if strings.Contains(fmt.Sprintf("%v %+v %#v %v", err, err, err, e.Err), password) {
			tb.Fatalf("%s: the error has the password: %v", what, err)
		}
		if strings.Contains(e.Err.Error(), b.Cause) {
			if e.Permanent != b.Permanent || !strings.Contains(e.Hint, b.Hint) {
				tb.Errorf("%s: %+v; want permanent %v, and a hint about %q", what, e, b.Permanent, b.Hint)
			}
			return
		}
		if e.Permanent {
			tb.Fatalf("%s: %+v is permanent; want an error about %q", what, e, b.Cause)
		}
		time.Sleep(10 * time.Millisecond)
	}
	tb.Fatalf("%s: %v; want an error about %q", what, err, b.Cause)
}

// WantServerError requires an error of a server on this machine whose hint contains this
// text. permanent says whether the error must be permanent.
func WantServerError(tb TB, err error, permanent bool, hint string) {
	tb.Helper()
	if e := servertest.WantDriverError(tb, err, permanent, hint); !strings.HasPrefix(e.Backend, "redis 127.0.0.1:") {
		tb.Errorf("%v; want it to name the server", err)
	}
}

// recovers is Recovers for a bounded step.
func recovers(tb TB, step func(context.Context) error) {
	tb.Helper()
	Recovers(tb, func() error { return bounded(step) })
}

// Recovers repeats a step until a connection works again. Only ErrUnavailable may come
// before.
func Recovers(tb TB, step func() error) {
	tb.Helper()
	basictest.Until(tb, "afterwards", func() error {
		err := step()
		if err != nil && !errors.Is(err, driver.ErrUnavailable) {
			tb.Fatalf("afterwards: %v", err)
		}
		return err
	})
}
