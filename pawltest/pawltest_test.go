package pawltest_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/leaktest"
	"github.com/pawl-go/pawl/internal/recordtest"
	"github.com/pawl-go/pawl/pawltest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, f func(t *testing.T, b *pawltest.Backend)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) { f(t, pawltest.New(t)) })
}

func must[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

// lockName takes the lock of a name. awaitLoss waits until the lease is lost, and returns
// the reason and how long it waited.
func lockName(t *testing.T, c *pawl.Client, name string) (awaitLoss func() (pawl.Reason, time.Duration)) {
	t.Helper()
	lease := must(c.Mutex(name).Lock(t.Context()))(t)
	return func() (pawl.Reason, time.Duration) {
		t.Helper()
		began := time.Now()
		<-lease.Done()
		why, _ := errors.AsType[*pawl.LostError](lease.Err())
		return why.Reason, time.Since(began)
	}
}

func TestFaultsLoseLeases(t *testing.T) {
	const ttl, margin = 30 * time.Second, 3 * time.Second
	for what, c := range map[string]struct {
		fault  func(b *pawltest.Backend, c *pawl.Client)
		reason pawl.Reason
		within time.Duration
	}{
		"Fail":     {func(b *pawltest.Backend, _ *pawl.Client) { b.Fail(nil) }, pawl.ReasonUnreachable, ttl - margin},
		"Fail one": {func(b *pawltest.Backend, c *pawl.Client) { b.Fail(errors.New("own"), c) }, pawl.ReasonUnreachable, ttl - margin},
		"Hang":     {func(b *pawltest.Backend, _ *pawl.Client) { b.Hang() }, pawl.ReasonUnreachable, ttl - margin},
		"Delay":    {func(b *pawltest.Backend, c *pawl.Client) { b.Delay(time.Hour, c) }, pawl.ReasonUnreachable, ttl - margin},
		"Forget":   {func(b *pawltest.Backend, _ *pawl.Client) { b.Forget() }, pawl.ReasonExpired, ttl / 3},
		"Jump":     {func(b *pawltest.Backend, _ *pawl.Client) { b.Jump(time.Hour) }, pawl.ReasonExpired, ttl / 3},
		"Expire":   {func(b *pawltest.Backend, _ *pawl.Client) { b.Expire("x") }, pawl.ReasonExpired, ttl / 3},
		"Break":    {func(b *pawltest.Backend, _ *pawl.Client) { b.Break("x") }, pawl.ReasonBroken, 0},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *pawltest.Backend) {
				client := b.Client(nil)
				awaitLoss := lockName(t, client, "x")
				b.AssertHeld("x")
				time.Sleep(time.Minute)
				c.fault(b, client)
				reason, took := awaitLoss()
				if reason != c.reason || took > c.within {
					t.Errorf("the lease was lost: %v after %v; want %v within %v", reason, took, c.reason, c.within)
				}
				b.Restore()
				lease := must(b.Client(nil).Mutex("x").Lock(t.Context()))(t)
				b.AssertHolders("x", 1)
				basictest.NoError(t, lease.Release(t.Context()))
				b.AssertFree("x")
			})
		})
	}
}

func TestAFaultOfOneClientDoesNotAffectAnother(t *testing.T) {
	inBubble(t, func(t *testing.T, b *pawltest.Backend) {
		one, two := b.Client(nil), b.Client(nil)
		awaitLoss := lockName(t, one, "x")
		b.Fail(nil, one)
		began := time.Now()
		lease := must(two.Mutex("x").Lock(t.Context()))(t)
		if reason, _ := awaitLoss(); reason != pawl.ReasonUnreachable {
			t.Errorf("the lease was lost: %v; want ReasonUnreachable", reason)
		}
		if took := time.Since(began); took < 20*time.Second || took > 31*time.Second {
			t.Errorf("the other client got the lock after %v, want 20 to 31 s", took)
		}
		_, err := one.Mutex("y").TryLock(t.Context())
		if !errors.Is(err, pawl.ErrUnavailable) {
			t.Errorf("TryLock returns %v, want ErrUnavailable", err)
		}
		_ = lease.Release(t.Context())
	})
}

func TestAFaultForAllAffectsNewClients(t *testing.T) {
	for range 50 {
		b := pawltest.New(t)
		made := make(chan *pawl.Client)
		const n = 8
		for range n {
			go func() { made <- b.Client(nil) }()
		}
		clients := []*pawl.Client{<-made} // the others are being made
		b.Fail(nil)
		for len(clients) < n {
			clients = append(clients, <-made)
		}
		for _, c := range clients {
			if _, err := c.Inspect(t.Context(), "x"); !errors.Is(err, pawl.ErrUnavailable) {
				t.Fatalf("a client does not fail: %v", err)
			}
		}
	}
}

// A client's driver pushes grants and changes, and claims several names in one step.
func TestGrantsAndChangesArePushed(t *testing.T) {
	inBubble(t, func(t *testing.T, b *pawltest.Backend) {
		one, two := b.Client(nil), b.Client(nil)
		seen := make(chan int, 10)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			for e, err := range two.Watch(ctx, "x") {
				if err == nil {
					seen <- len(e.Holders)
				}
			}
		}()
		<-seen
		all := must(pawl.All(one.Mutex("x"), one.Mutex("y")).Lock(t.Context()))(t)
		began := time.Now()
		<-seen
		var waiting sync.WaitGroup
		waiting.Go(func() { _ = two.Mutex("x").Do(t.Context(), func(context.Context) error { return nil }) })
		synctest.Wait()
		b.AssertWaiting("x", 1)
		basictest.NoError(t, all.Release(t.Context()))
		waiting.Wait()
		if took := time.Since(began); took > 50*time.Millisecond {
			t.Errorf("the change and the grant arrived after %v, want 50 ms at most", took)
		}
	})
}

// holdInAnotherProcess takes the name "x" for a process outside of the test.
func holdInAnotherProcess(b *pawltest.Backend) {
	lease, _ := b.Client(nil).Mutex("x").Lock(context.Background())
	_, _ = lease.Detach(context.Background())
}

func TestUnfinishedCallsFailTheTest(t *testing.T) {
	for what, leave := range map[string]func(c *pawl.Client, b *pawltest.Backend) (cleanUp func()){
		"a lease": func(c *pawl.Client, _ *pawltest.Backend) func() {
			_, _ = c.Mutex("x").Lock(context.Background())
			return func() {}
		},
		"a waiter": func(c *pawl.Client, b *pawltest.Backend) func() {
			holdInAnotherProcess(b)
			go c.Mutex("x").Lock(context.Background())
			return func() {}
		},
		"a waiter behind its own client": func(c *pawl.Client, _ *pawltest.Backend) func() {
			_, _ = c.Mutex("x").Lock(context.Background())
			go c.Mutex("x").Lock(context.Background())
			return func() {}
		},
		"a standby": func(c *pawl.Client, b *pawltest.Backend) func() {
			holdInAnotherProcess(b)
			go c.Election("x").Run(context.Background(), func(context.Context) error { return nil })
			return func() {}
		},
		"a watch": func(c *pawl.Client, _ *pawltest.Backend) func() {
			go func() {
				for range c.Watch(context.Background(), "x") {
				}
			}()
			return func() {}
		},
		"a wait": func(c *pawl.Client, b *pawltest.Backend) func() {
			holdInAnotherProcess(b)
			go c.WaitUntilFree(context.Background(), "x")
			return func() {}
		},
		"a function": func(c *pawl.Client, b *pawltest.Backend) func() {
			end := make(chan struct{})
			go c.Mutex("x").Do(context.Background(), func(context.Context) error { <-end; return nil })
			synctest.Wait()
			b.Break("x")
			return func() { close(end) }
		},
	} {
		t.Run(what, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				r := &recordtest.Recorder{TB: t}
				b := pawltest.New(r)
				cleanUp := leave(b.Client(nil), b)
				synctest.Wait()
				if failures := r.End(); len(failures) != 1 || !strings.Contains(failures[0], "left something behind") {
					t.Errorf("the failures are %q, want one that names what was left", failures)
				}
				cleanUp()
			})
		})
	}
	bubble.Test(t, func(t *testing.T) {
		r := &recordtest.Recorder{TB: t}
		b := pawltest.New(r)
		c := b.Client(nil)
		if _, err := must(c.Mutex("x").Lock(t.Context()))(t).Detach(t.Context()); err != nil {
			t.Error(err)
		}
		_ = c.Close()
		if failures := r.End(); len(failures) > 0 {
			t.Errorf("the test failed: %q", failures)
		}
	})
}

// A test may leave calls that end with the test's ctx, or soon after.
func TestCallsThatEndWithTheTestAreAllowed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := &recordtest.Recorder{TB: t}
		b := pawltest.New(r)
		c := b.Client(nil)
		ctx, cancel := context.WithCancel(context.Background())
		holdInAnotherProcess(b)
		for range 3 {
			go c.Mutex("x").Lock(ctx)
			go c.Election("x").Run(ctx, func(context.Context) error { return nil })
			go c.WaitUntilFree(ctx, "x")
			go func() {
				for range c.Watch(ctx, "y") {
				}
			}()
		}
		go c.Election("led").Run(context.Background(), func(ctx context.Context) error { <-ctx.Done(); return nil })
		time.Sleep(10 * time.Second)
		time.AfterFunc(time.Second, cancel)
		if failures := r.End(); len(failures) > 0 {
			t.Errorf("the test failed: %q", failures)
		}
	})
}

// A test can end a service while its database is down.
func TestAClientMayBeClosedWhileTheBackendFails(t *testing.T) {
	for what, fault := range map[string]func(b *pawltest.Backend){
		"Fail": func(b *pawltest.Backend) { b.Fail(nil) },
		"Hang": func(b *pawltest.Backend) { b.Hang() },
	} {
		for how, end := range map[string]func(c *pawl.Client) error{
			"Close": (*pawl.Client).Close,
			"Shutdown": func(c *pawl.Client) error {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				return c.Shutdown(ctx)
			},
		} {
			t.Run(what+" "+how, func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					r := &recordtest.Recorder{TB: t}
					b := pawltest.New(r)
					c := b.Client(nil)
					must(c.Mutex("x").Lock(t.Context()))(t)
					fault(b)
					if err := end(c); err == nil {
						t.Error("the call returned no error, but cannot have released the lease")
					}
					if failures := r.End(); len(failures) > 0 {
						t.Errorf("the test failed: %q", failures)
					}
				})
			})
		}
	}
}

func TestAssertionsFail(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := &recordtest.Recorder{TB: t}
		b := pawltest.New(r)
		lease := must(b.Client(nil).Mutex("x").Lock(t.Context()))(t)
		b.AssertFree("x")
		b.AssertHolders("x", 2)
		b.AssertWaiting("x", 1)
		b.AssertHeld("y")
		b.Break("y")
		b.Expire("y")
		b.Fail(nil, &pawl.Client{})
		_ = lease.Release(t.Context())
		if failures := r.End(); len(failures) != 7 {
			t.Errorf("%d of 7 assertions failed: %q", len(failures), failures)
		}
	})
}

func TestItWorksOutsideOfABubble(t *testing.T) {
	b := pawltest.New(t)
	awaitLoss := lockName(t, b.Client(nil), "x")
	b.Break("x")
	if reason, _ := awaitLoss(); reason != pawl.ReasonBroken {
		t.Errorf("the lease was lost: %v; want ReasonBroken", reason)
	}
}
