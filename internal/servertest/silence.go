package servertest

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// CheckSilentConnections has a claim of far wait, whose connections go through the proxy.
// Then all of these go silent without an end, as they do when a device on the way is
// gone. The holder releases the name, and that signal is lost. The driver has to notice
// the silence, connect again, and have the waiter look.
func CheckSilentConnections(tb TB, proxy *Proxy, far, near driver.Driver) {
	tb.Helper()
	signals, ok := far.(driver.Signaler)
	if !ok {
		tb.Fatalf("%T has no signals", far)
	}
	heard := make(chan driver.Signal, 1000)
	defer signals.Listen(func(s driver.Signal) {
		select {
		case heard <- s:
		default:
		}
	})()
	holder := driver.Claim{Name: "job", Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: 10 * time.Minute, Token: driver.NewToken()}
	waiter := holder
	waiter.Token, waiter.Queue, waiter.QueueTTL = driver.NewToken(), true, 10*time.Minute
	// Connections for requests go silent, too, so an attempt may have to be repeated.
	acquire := func(d driver.Driver, c driver.Claim) error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_, err := d.Acquire(ctx, c)
		return err
	}
	patience := time.Now().Add(time.Minute)
	insist := func(what string, f func() error) {
		tb.Helper()
		err := f()
		for ; err != nil && time.Now().Before(patience); err = f() {
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil {
			tb.Fatalf("%s: %v", what, err)
		}
	}
	insist("hold", func() error { return acquire(near, holder) })
	insist("wait", func() error {
		if err := acquire(far, waiter); !errors.Is(err, driver.ErrHeld) {
			return errors.Join(errors.New("want ErrHeld"), err)
		}
		return nil
	})
	insist("push", func() error { // the subscription may be on its way
		if !far.Properties().PushesGrants {
			return errors.New("no push")
		}
		return nil
	})
	proxy.Freeze()
	began := time.Now()
	for len(heard) > 0 {
		<-heard // from before
	}
	insist("release", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		return near.Release(ctx, driver.LeaseRef{Name: holder.Name, Token: holder.Token})
	})
	select {
	case <-heard:
	case <-time.After(3 * time.Minute):
		tb.Fatalf("the waiter hears nothing")
	}
	if took := time.Since(began); took > time.Minute { // promised are some 15 s, on a machine with nothing else to do
		tb.Errorf("the waiter heard after %v", took)
	}
	patience = time.Now().Add(time.Minute)
	insist("the waiter's lock", func() error { return acquire(far, waiter) })
}
