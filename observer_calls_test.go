package pawl_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

// A lease may end before Acquired has returned.
func TestTheEndOfALeaseIsReportedAfterItsBeginning(t *testing.T) {
	for name, end := range map[string]func(c, other *pawl.Client, net *network, l *pawl.Lease){
		"expired":  func(_, _ *pawl.Client, net *network, _ *pawl.Lease) { net.down() },
		"forced":   func(_, other *pawl.Client, _ *network, _ *pawl.Lease) { _, _ = other.Mutex("x").ForceLock(background) },
		"closed":   func(c, _ *pawl.Client, _ *network, _ *pawl.Lease) { go c.Close() },
		"released": func(_, _ *pawl.Client, _ *network, l *pawl.Lease) { _ = l.Release(background) },
	} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			var (
				events = &eventRecorder{}
				o      = events.observer()
				c      *pawl.Client
				net    *network
			)
			other, _ := w.client(nil)
			o.Acquired = func(e pawl.AcquiredEvent) {
				end(c, other, net, e.Lease)
				<-e.Lease.Done()
				time.Sleep(time.Second)
				events.record("acquired", e.Event, nil)
			}
			c, net = w.client(&pawl.Options{Observer: o})
			must(c.Mutex("x").Lock(background))(t)
			synctest.Wait()
			events.checkBalance(t)
			wantEqual(t, "reported ends", events.count("lost")+events.count("released"), 1)
			net.setHooks(nil, nil)
		})
	}
}

// A waiter may give up at the moment when a holder passes it a lease. Then no caller gets
// that lease, and the Observer gets no event of it.
func TestALeaseThatNoCallerGotIsNotReported(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		events := &eventRecorder{}
		c, _ := w.client(&pawl.Options{Observer: events.observer()})
		other, _ := w.client(nil)
		for range 100 {
			held := must(other.Mutex("x").Lock(background))(t)
			ctx, cancel := context.WithCancel(background)
			first := startLock(t, c.Mutex("x"))
			go func() {
				if l, err := c.Mutex("x").Lock(ctx); err == nil {
					_ = l.Release(background)
				}
			}()
			synctest.Wait()
			time.Sleep(2 * time.Second) // the first waiter renews its place, and claims a range of fences
			_ = held.Release(background)
			l := <-first
			synctest.Wait()
			cancel() // the second waiter usually runs only after the lease was passed to it
			_ = l.Release(background)
			synctest.Wait()
		}
		noError(t, c.Close())
		events.checkBalance(t)
	})
}

func TestObserverThatFailsInACallLeavesNothingBehind(t *testing.T) {
	for how, fail := range callbackFailures {
		for what, provoke := range map[string]func(c, other *pawl.Client, net *network){
			"queued": func(c, other *pawl.Client, _ *network) {
				l, _ := other.Mutex("x").Lock(background)
				inGoroutine(func() { _, _ = c.Mutex("x").Lock(background) })
				_ = l.Release(background)
			},
			"refused": func(c, other *pawl.Client, _ *network) {
				l, _ := other.Mutex("x").Lock(background)
				inGoroutine(func() { _, _ = c.Mutex("x").TryLock(background) })
				_ = l.Release(background)
			},
			"acquired": func(c, _ *pawl.Client, _ *network) {
				inGoroutine(func() { _, _ = c.Mutex("x").Lock(background) })
				inGoroutine(func() { _, _ = c.Mutex("x").TryLock(background) })
				inGoroutine(func() { _, _ = c.Mutex("x").ForceLock(background) })
			},
			"released": func(c, _ *pawl.Client, _ *network) {
				l, _ := c.Mutex("x").Lock(background)
				inGoroutine(func() { _ = l.Release(background) })
				_ = l.Release(background)
			},
			"lost found by Release": func(c, other *pawl.Client, net *network) {
				net.dropSignals()
				l, _ := c.Mutex("x").Lock(background)
				forced, _ := other.Mutex("x").ForceLock(background)
				inGoroutine(func() { _ = l.Release(background) })
				_ = forced.Release(background)
			},
			"failed request of a try": func(c, _ *pawl.Client, net *network) {
				net.setHooks(nil, failRequests("acquire"))
				inGoroutine(func() { _, _ = c.Mutex("x").TryLock(background) })
				net.setHooks(nil, nil)
			},
			"failed request of a wait": func(c, _ *pawl.Client, net *network) {
				net.setHooks(nil, failRequests("acquire"))
				inGoroutine(func() { _, _ = c.Mutex("x").Lock(background) })
				net.setHooks(nil, nil)
			},
			"failed request of a release": func(c, _ *pawl.Client, net *network) {
				l, _ := c.Mutex("x").Lock(background)
				var first sync.Once // a panic in the second request, which the client repeats, would end the program
				net.setHooks(func(string) (err error) { first.Do(func() { err = errNet }); return err }, nil)
				inGoroutine(func() { _ = l.Release(background) })
				net.setHooks(nil, nil)
			},
		} {
			runInWorld(t, what+" "+how, func(t *testing.T, w *world) {
				failingKind, _, _ := strings.Cut(what, " ")
				failed := false
				events := &eventRecorder{afterEach: func(kind string) {
					if kind == failingKind {
						failed = true
						fail()
					}
				}}
				c, net := w.client(&pawl.Options{Observer: events.observer()})
				other, _ := w.client(nil)
				provoke(c, other, net)
				if synctest.Wait(); !failed {
					t.Error("the Observer did not fail")
				}
				time.Sleep(200 * time.Millisecond) // a release that failed is repeated
				w.wantFree("x")
				wantNothingLeft(t, c)
				noError(t, c.Close())
			})
		}
	}
}

// If Lost or Failed ends the client's goroutine that calls it, no other lease is lost. (A
// panic there ends the program, as in any goroutine without a recover.)
func TestAnObserverThatEndsGoroutinesOfTheClientHarmsNoLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, net := w.client(&pawl.Options{Observer: &pawl.Observer{
			Lost:   func(pawl.LostEvent) { runtime.Goexit() },
			Failed: func(pawl.FailedEvent) { runtime.Goexit() },
		}})
		bounded := must(c.Mutex("bounded", pawl.WithMaxHold(time.Minute)).Lock(background))(t)
		other, _ := w.client(nil)
		broken := must(c.Mutex("broken").Lock(background))(t)
		lasting := must(c.Mutex("lasting").Lock(background))(t)
		must(other.Mutex("broken").ForceLock(background))(t)
		<-broken.Done()
		up := net.down()
		time.Sleep(15 * time.Second) // renewals fail meanwhile
		up()
		<-bounded.Done()
		time.Sleep(5 * time.Minute)
		noError(t, lasting.Err())
		up = net.down()
		inGoroutine(func() { _ = lasting.Release(background) }) // the client repeats the release
		time.Sleep(time.Second)
		up()
		time.Sleep(2 * time.Second)
		w.wantFree("lasting")
		noError(t, c.Close())
	})
}

// The Observer may use the client: the client calls it without holding a mutex, and on no
// goroutine for which others wait.
func TestObserverMayUseTheClient(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var c *pawl.Client
		var spare *pawl.Lease
		busy := make(chan struct{}, 1) // one call at a time, because its own locks cause events, too
		use := func(l *pawl.Lease) {
			select {
			case busy <- struct{}{}:
			default:
				return
			}
			defer func() { <-busy }()
			for _, claim := range []func(context.Context) (*pawl.Lease, error){c.Mutex("own").Lock, c.Mutex("x").TryLock} {
				if l, err := claim(background); err == nil {
					_ = l.Release(background)
				}
			}
			_ = spare.Release(background)
			_, _ = c.Inspect(background, "x")
			_ = c.Break(background, "x", 1, noDelay)
			for range c.List(background, "") {
			}
			if l != nil {
				_ = l.Err()
				_, _ = l.Context(), l.Deadline()
			}
		}
		c, net := w.client(&pawl.Options{Observer: &pawl.Observer{
			Queued:      func(pawl.QueuedEvent) { use(nil) },
			NotAcquired: func(pawl.NotAcquiredEvent) { use(nil) },
			Acquired:    func(e pawl.AcquiredEvent) { use(e.Lease) },
			Released:    func(e pawl.ReleasedEvent) { _ = e.Lease.Release(background); use(e.Lease) },
			Lost:        func(e pawl.LostEvent) { _ = e.Lease.Release(background); use(e.Lease) },
			Failed:      func(pawl.FailedEvent) { use(nil) },
		}})
		other, _ := w.client(nil)
		cycle := func(end func(l *pawl.Lease)) {
			busy <- struct{}{}
			spare = must(c.Mutex("spare").Lock(background))(t)
			<-busy
			held := must(other.Mutex("x").Lock(background))(t)
			time.AfterFunc(time.Second, func() { _ = held.Release(background) })
			_, _ = c.Mutex("x").TryLock(background)
			l := must(c.Mutex("x").Lock(background))(t)
			end(l)
			time.Sleep(time.Minute)
		}
		cycle(func(l *pawl.Lease) { noError(t, l.Release(background)) })
		cycle(func(l *pawl.Lease) {
			forced, _ := other.Mutex("x").ForceLock(background)
			<-l.Done()
			_ = forced.Release(background)
		})
		cycle(func(l *pawl.Lease) {
			up := net.down()
			<-l.Done()
			up()
		})
		cycle(func(l *pawl.Lease) {
			up := net.down()
			_ = l.Release(background)
			up()
		})
		noError(t, c.Close())
	})
}
