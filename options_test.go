package pawl_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

func TestATTLThatTheBackendCannotKeepIsRefused(t *testing.T) {
	const short = 999 * time.Millisecond
	patient := func() *network { // to a backend that cannot keep a lease of less than a second
		return &network{Driver: engine.Full(memlock.New(nil)), properties: func(p *driver.Properties) { p.Backend, p.MinTTL = "patient", time.Second }}
	}
	for what, o := range map[string]*pawl.Options{"TTL": {TTL: short}, "QueueTTL": {QueueTTL: short}} {
		_, err := pawl.New(patient(), o)
		if want := "pawl: " + what + " is 999ms; allowed: 1s or more on patient"; err == nil || err.Error() != want || !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	c := must(pawl.New(patient(), &pawl.Options{TTL: time.Second}))(t)
	defer c.Close()
	for what, o := range map[string]pawl.LockOption{"TTL": pawl.WithTTL(short), "maximum hold": pawl.WithMaxHold(short)} {
		_, err := c.Mutex("x", o).TryLock(t.Context())
		if want := "pawl: " + what + " is 999ms; allowed: 1s or more on patient"; err == nil || err.Error() != want || !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	for name, o := range map[string]pawl.LockOption{"default": nil, "least": pawl.WithTTL(time.Second), "short": pawl.WithMaxHold(time.Second)} {
		if _, err := c.Mutex(name, o).TryLock(t.Context()); err != nil {
			t.Errorf("with the option %q TryLock returns %v", name, err)
		}
	}
}

// A user relies on each option, so an option without effect is refused.
func TestOptionsWithoutEffectAreRefused(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, c *pawl.Client, net *network) {
		handle := must(must(c.Mutex("held").Lock(background))(t).Detach(background))(t)
		claimed, renewed := net.count("acquire"), net.count("renew")
		never := func(context.Context) error { t.Error("the function ran"); return nil }
		uses := map[string]func(o pawl.LockOption) error{
			"Election": func(o pawl.LockOption) error { return c.Election("x", o).Run(background, never) },
			"Once":     func(o pawl.LockOption) error { return errOf(c.Once("x", o).Do(background, "1", never)) },
			"Attach":   func(o pawl.LockOption) error { return errOf(c.Attach(background, handle, o)) },
		}
		value := []byte("v")
		options := map[string]pawl.LockOption{
			"WithValue": pawl.WithValue(value), "WithValueBelow": pawl.WithValueBelow(value), "WithTTL": pawl.WithTTL(time.Second),
			"WithMinHold": pawl.WithMinHold(time.Second), "WithLockDelay": pawl.WithLockDelay(time.Second), "WithLabel": pawl.WithLabel("k", "v"),
			"WithWait": pawl.WithWait(time.Second),
		}
		refused := map[string][]string{
			"Once": {"WithValue", "WithValueBelow"}, "Election": {"WithValueBelow", "WithWait"}, "Attach": slices.Collect(maps.Keys(options)),
		}
		for use, try := range uses {
			for _, name := range refused[use] {
				err := try(options[name])
				invalid, ok := errors.AsType[*pawl.InvalidError](err)
				if !ok || invalid.Argument != name || invalid.Allowed == "" {
					t.Errorf("%s with %s returns %v, want an InvalidError about the option", use, name, err)
				}
			}
		}
		if net.count("acquire") != claimed || net.count("renew") != renewed {
			t.Error("a request was sent")
		}
	})
}

// The caller may change its own map while locks are acquired.
func TestOptionsAreCopiedAtNew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		acquired := 0
		o := &pawl.Options{
			Labels:   map[string]string{"job": "a"},
			Observer: &pawl.Observer{Acquired: func(pawl.AcquiredEvent) { acquired++ }},
		}
		c, _ := w.client(o)
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 100 {
				o.Labels["job"] = "b"
				o.Observer.Acquired = nil
			}
		})
		for range 100 {
			l := must(c.Mutex("x", pawl.WithLabel("run", "7")).Lock(background))(t)
			if labels := w.entry("x").Holders[0].Owner.Labels; labels["job"] != "a" || labels["run"] != "7" {
				t.Errorf("the labels are %v, want job=a and run=7", labels)
			}
			noError(t, l.Release(background))
		}
		wg.Wait()
		wantEqual(t, "reported leases", acquired, 100)
	})
}

func TestLongestDurationsDoNotOverflow(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const longest = time.Duration(math.MaxInt64)
		c, net := w.client(&pawl.Options{TTL: driver.MaxTTL, QueueTTL: driver.MaxTTL, RetryFor: longest, HandoffWindow: time.Second})
		m := c.Mutex("x", pawl.WithLockDelay(driver.MaxTTL))
		lease := must(m.Lock(background))(t)
		next := make(chan *pawl.Lease)
		go func() { next <- must(m.Lock(background))(t) }()
		time.Sleep(time.Hour)
		noError(t, lease.Err())
		noError(t, lease.Release(background))
		wantWithin(t, "the term", time.Until((<-next).Deadline()), driver.MaxTTL/2, driver.MaxTTL-driver.MaxTTL/10)
		wantWithin(t, "claims", net.count("acquire"), 0, 3)
	})
}

func TestMaxHoldCountsFromTheGrantEvenAfterAWait(t *testing.T) {
	for name, c := range map[string]struct {
		maxHold   time.Duration
		noSignals bool
		waited    time.Duration // 0: the lock is free
	}{
		"no wait": {2 * time.Minute, false, 0}, "a wait": {time.Second, false, 10300 * time.Millisecond}, "no signals": {time.Second, true, 10300 * time.Millisecond},
	} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			b, net, a := w.twoWithNetwork()
			net.noSignals = c.noSignals
			if c.waited > 0 {
				held := must(a.Mutex("x").Lock(background))(t)
				time.AfterFunc(c.waited, func() { noError(t, held.Release(background)) })
			}
			lease := must(b.Mutex("x", pawl.WithMaxHold(c.maxHold)).Lock(background))(t)
			began := time.Now()
			next := make(chan struct{})
			go func() { must(a.Mutex("x").Lock(background))(t); close(next) }()
			<-lease.Done()
			wantLoss(t, lease.Err(), pawl.ReasonMaxHold)
			wantWithin(t, "the lease was lost after", time.Since(began), c.maxHold-max(c.maxHold/12, 150*time.Millisecond), c.maxHold)
			<-next
			if took := time.Since(began); c.waited == 0 && took < c.maxHold-time.Millisecond || took > c.maxHold+10*time.Millisecond {
				t.Errorf("the next holder got the lock after %v, want %v", took, c.maxHold)
			}
			wantWithin(t, "renewals", net.count("renew"), 0, 20)
		})
	}
}
