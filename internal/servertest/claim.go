package servertest

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
)

var noError = basictest.NoError

// Patient has the options of a client that tolerates a machine that hangs for some time.
// With a server that hangs, use other options, because Close may take MaxRequest.
var Patient = &pawl.Options{RequestTimeout: driver.MaxRequest}

// Mutex returns an exclusive claim that does not queue.
func Mutex(name string) driver.Claim {
	return driver.Claim{
		Name: name, Token: driver.NewToken(), Owner: driver.Owner{Client: "~0123456789abcdef", Host: "host-1", PID: 4242},
		Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: 10 * time.Minute, QueueTTL: 10 * time.Minute,
	}
}

// Queued returns an exclusive claim that takes a place in the queue.
func Queued(name string) driver.Claim {
	c := Mutex(name)
	c.Queue = true
	return c
}

// Reader returns a shared claim.
func Reader(name string) driver.Claim {
	c := Mutex(name)
	c.Weight = 1
	return c
}

// Lease returns the lease of a granted claim.
func Lease(c driver.Claim) driver.LeaseRef {
	return driver.LeaseRef{Name: c.Name, Token: c.Token, TTL: c.TTL}
}

// Gets checks that the claim is granted.
func Gets(tb TB, d driver.Driver, c driver.Claim) driver.Grant {
	tb.Helper()
	var g driver.Grant
	err := repeat(func() (err error) {
		g, err = d.Acquire(context.Background(), c)
		return err
	})
	if err != nil {
		tb.Fatalf("Acquire: %v; want a grant", err)
	}
	return g
}

// repeat repeats a request that failed slowly, as a client does, because the machine may
// have hung. It does not repeat a request that fails at once.
func repeat(request func() error) (err error) {
	for range 20 {
		began := time.Now()
		if err = request(); !errors.Is(err, driver.ErrUnavailable) || time.Since(began) < time.Second {
			break
		}
	}
	return err
}

// Waits checks that the claim is not granted because others hold the name.
func Waits(tb TB, d driver.Driver, c driver.Claim) {
	tb.Helper()
	err := repeat(func() error {
		_, err := d.Acquire(context.Background(), c)
		return err
	})
	if held, ok := errors.AsType[*driver.HeldError](err); !ok || c.Queue != (held.Position > 0) {
		tb.Fatalf("Acquire: %v; want a HeldError, with a place if the claim queues", err)
	}
}

// Renews checks that the lease is renewed.
func Renews(tb TB, d driver.Driver, c driver.Claim) {
	tb.Helper()
	err := repeat(func() error {
		answers, err := d.Renew(context.Background(), []driver.LeaseRef{Lease(c)})
		return errors.Join(append(answers, err)...)
	})
	if err != nil {
		tb.Fatalf("Renew: %v; want the lease held", err)
	}
}

// Releases checks that the lease is released.
func Releases(tb TB, d driver.Driver, c driver.Claim) {
	tb.Helper()
	tries := 0
	err := repeat(func() error {
		tries++
		return d.Release(context.Background(), Lease(c))
	})
	if err != nil && !(tries > 1 && errors.Is(err, driver.ErrNoSuchLease)) { // an earlier try may have released it
		tb.Fatalf("Release: %v", err)
	}
}

// Cycle checks that a name is granted and then released.
func Cycle(tb TB, d driver.Driver, name string) driver.Grant {
	tb.Helper()
	c := Mutex(name)
	g := Gets(tb, d, c)
	Releases(tb, d, c)
	return g
}

// Rises checks that the fence of a later grant is greater.
func Rises(tb TB, before, after uint64) {
	tb.Helper()
	if after <= before {
		tb.Errorf("fence %d after %d", after, before)
	}
}

// Lists returns the entries that a driver lists. An error of List fails the test.
func Lists(tb TB, d driver.Lister, prefix string) (all []driver.Entry) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute) // only a hang takes so long
	defer cancel()
	for e, err := range d.List(ctx, prefix) {
		noError(tb, err)
		all = append(all, e)
	}
	return all
}

// Within returns a ctx that ends after d, at the latest with the test.
func Within(tb TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	tb.Cleanup(cancel)
	return ctx
}

// Listen returns a channel with the signals of a driver until the test ends.
func Listen(tb TB, d driver.Signaler) <-chan driver.Signal {
	signals := make(chan driver.Signal, 1000)
	tb.Cleanup(d.Listen(func(s driver.Signal) { signals <- s }))
	return signals
}

// Hear waits for a signal of this kind for this token, and returns how long that took.
func Hear(tb TB, signals <-chan driver.Signal, kind driver.SignalKind, token driver.Token) time.Duration {
	tb.Helper()
	began, timeout := time.Now(), time.After(2*time.Minute) // only a hang takes so long
	for {
		select {
		case s := <-signals:
			if s.Kind == kind && s.Token == token {
				return time.Since(began)
			}
		case <-timeout:
			tb.Fatalf("the driver sent no signal of kind %d", kind)
		}
	}
}

// As converts a backend's driver to its concrete type, for tests that read its fields or
// use all its abilities.
func As[D driver.Driver](d driver.Driver, err error) (D, error) {
	concrete, _ := d.(D)
	return concrete, err
}
