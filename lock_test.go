package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/memlock"
)

func TestLockExcludesOtherClients(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, _ := w.client(nil)
		lease := must(t)(a.Mutex("x").Lock(background))
		_, err := b.Mutex("x").TryLock(background)
		isError(t, err, pawl.ErrHeld)
		var held *pawl.HeldError
		if !errors.As(err, &held) || len(held.Holders) != 1 || held.Holders[0].Fence != lease.Fence() {
			t.Fatalf("the error does not name the holder: %v", err)
		}
		must(t)(b.Mutex("y").TryLock(background))
		noError(t, lease.Release(background))
		next := must(t)(b.Mutex("x").TryLock(background))
		if next.Fence() <= lease.Fence() {
			t.Fatalf("fence %d after %d", next.Fence(), lease.Fence())
		}
	})
}

func TestReadersShareAndWritersDoNot(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, _ := w.client(nil)
		r1 := must(t)(a.RWMutex("x").RLock(background))
		r2 := must(t)(b.RWMutex("x").TryRLock(background))
		_, err := b.RWMutex("x").TryLock(background)
		isError(t, err, pawl.ErrHeld)
		noError(t, r1.Release(background))
		_, err = b.RWMutex("x").TryLock(background)
		isError(t, err, pawl.ErrHeld)
		noError(t, r2.Release(background))
		must(t)(b.RWMutex("x").TryLock(background))
	})
}

func TestSemaphoreCountsPermitsOfAllClients(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, _ := w.client(nil)
		two := must(t)(a.Semaphore("gpu", 4).Acquire(background, 2))
		must(t)(b.Semaphore("gpu", 4).TryAcquire(background, 2))
		_, err := b.Semaphore("gpu", 4).TryAcquire(background, 1)
		isError(t, err, pawl.ErrHeld)
		_, err = b.Mutex("gpu").TryLock(background)
		isError(t, err, pawl.ErrHeld)
		noError(t, two.Release(background))
		must(t)(b.Semaphore("gpu", 4).TryAcquire(background, 2))
	})
}

func TestBadInputIsRefusedBeforeAnythingIsSent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		claims := map[string]func() (*pawl.Lease, error){
			"empty name":            func() (*pawl.Lease, error) { return c.Mutex("").Lock(background) },
			"256 bytes":             func() (*pawl.Lease, error) { return c.Mutex(strings.Repeat("a", 256)).Lock(background) },
			"control character":     func() (*pawl.Lease, error) { return c.Mutex("a\nb").TryLock(background) },
			"invalid UTF-8":         func() (*pawl.Lease, error) { return c.RWMutex("a\xff").RLock(background) },
			"nil ctx":               func() (*pawl.Lease, error) { return c.Mutex("x").Lock(nil) }, //nolint:staticcheck // it is the test
			"zero TTL":              func() (*pawl.Lease, error) { return c.Mutex("x", pawl.WithTTL(0)).Lock(background) },
			"negative TTL":          func() (*pawl.Lease, error) { return c.Mutex("x", pawl.WithTTL(-1)).Lock(background) },
			"TTL under 10 ms":       func() (*pawl.Lease, error) { return c.Mutex("x", pawl.WithTTL(9*time.Millisecond)).Lock(background) },
			"TTL over 30 days":      func() (*pawl.Lease, error) { return c.Mutex("x", pawl.WithTTL(721*time.Hour)).Lock(background) },
			"negative minimum hold": func() (*pawl.Lease, error) { return c.Mutex("x", pawl.WithMinHold(-1)).Lock(background) },
			"negative delay":        func() (*pawl.Lease, error) { return c.Mutex("x", pawl.WithLockDelay(-1)).Lock(background) },
			"negative max hold":     func() (*pawl.Lease, error) { return c.Mutex("x", pawl.WithMaxHold(-1)).Lock(background) },
			"margin of the TTL":     func() (*pawl.Lease, error) { return c.Mutex("x", pawl.WithMargin(20*time.Second)).Lock(background) },
			"no permits":            func() (*pawl.Lease, error) { return c.Semaphore("x", 0).Acquire(background, 1) },
			"zero of four":          func() (*pawl.Lease, error) { return c.Semaphore("x", 4).Acquire(background, 0) },
			"five of four":          func() (*pawl.Lease, error) { return c.Semaphore("x", 4).TryAcquire(background, 5) },
			"all permits":           func() (*pawl.Lease, error) { return c.Semaphore("x", 1<<31-1).TryAcquire(background, 1) },
			"long label": func() (*pawl.Lease, error) {
				return c.Mutex("x", pawl.WithLabel("k", strings.Repeat("v", 257))).Lock(background)
			},
		}
		for what, claim := range claims {
			_, err := claim()
			var invalid *pawl.InvalidError
			if !errors.Is(err, pawl.ErrInvalid) || !errors.As(err, &invalid) || invalid.Allowed == "" {
				t.Errorf("%s: %v", what, err)
			}
		}
		if n := f.count("acquire"); n > 0 {
			t.Errorf("%d requests were sent", n)
		}
		if n := c.Gates() + c.Inboxes(); n > 0 {
			t.Errorf("%d things were left behind", n)
		}
	})
}

func TestImpossibleOptionsStopAtNew(t *testing.T) {
	for what, o := range map[string]*pawl.Options{
		"TTL":            {TTL: time.Millisecond},
		"QueueTTL":       {QueueTTL: -time.Second},
		"RequestTimeout": {RequestTimeout: -1},
		"LocalHandoff":   {LocalHandoff: time.Second + 1},
		"label":          {Labels: map[string]string{"": "x"}},
	} {
		d := memlock.New(nil)
		if _, err := pawl.New(d, o); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
		_ = d.Close()
	}
	if _, err := pawl.New(nil, nil); !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("nil driver: %v", err)
	}
}

func TestCtxThatIsOverWritesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		ctx, cancel := context.WithCancel(background)
		cancel()
		_, err := c.Mutex("x").Lock(ctx)
		isError(t, err, context.Canceled)
		_, err = c.Mutex("x").TryLock(ctx)
		isError(t, err, context.Canceled)
		if n := f.count("acquire"); n > 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
}

func TestDoReleasesOnReturnPanicAndGoexit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.client(nil)
		m := c.Mutex("x")
		boom := errors.New("boom")
		isError(t, m.Do(background, func(context.Context) error { return boom }), boom)
		w.free("x")
		func() {
			defer func() {
				if recover() != "panic" {
					t.Error("the panic was swallowed")
				}
			}()
			_ = m.Do(background, func(context.Context) error { panic("panic") })
		}()
		w.free("x")
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = m.Do(background, func(context.Context) error { runtime.Goexit(); return nil })
		})
		wg.Wait()
		w.free("x")
	})
}

func TestDoSaysTheFenceAndEndsWithEither(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.client(nil)
		ctx, cancel := context.WithCancel(background)
		err := c.Mutex("x").Do(ctx, func(ctx context.Context) error {
			if fence, ok := pawl.FenceFromContext(ctx); !ok || fence != w.entry("x").Holders[0].Fence {
				t.Errorf("fence %d, %v", fence, ok)
			}
			cancel() // the caller's ctx ends what runs under it
			<-ctx.Done()
			return ctx.Err()
		})
		isError(t, err, context.Canceled)
		w.free("x")

		other, _ := w.client(nil)
		err = c.Mutex("x").Do(background, func(ctx context.Context) error {
			must(t)(other.Mutex("x").ForceLock(background))
			<-ctx.Done() // and so does the loss
			isError(t, context.Cause(ctx), pawl.ErrLost)
			return nil
		})
		isError(t, err, pawl.ErrLost)
		if _, ok := pawl.FenceFromContext(background); ok {
			t.Error("a fence where there is no lease")
		}
	})
}

func TestTryDoSaysThatItWasSkipped(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, _ := w.client(nil)
		must(t)(a.Mutex("x").Lock(background))
		for _, try := range []func(context.Context, func(context.Context) error) (bool, error){
			b.Mutex("x").TryDo, b.RWMutex("x").TryDo, b.RWMutex("x").TryRDo, b.Semaphore("x", 1).TryDo,
		} {
			ran, err := try(background, func(context.Context) error { t.Error("it ran"); return nil })
			isError(t, err, pawl.ErrHeld)
			if ran {
				t.Error("says that it ran")
			}
		}
	})
}

func TestLeaseOutlivesTheCtxOfItsCall(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.client(nil)
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(background, key{}, "value"), time.Second)
		lease := must(t)(c.Mutex("x").Lock(ctx))
		cancel()
		time.Sleep(5 * time.Minute)
		noError(t, lease.Err())
		noError(t, lease.Context().Err())
		if lease.Context().Value(key{}) != "value" {
			t.Error("the context lost its values")
		}
		if fence, ok := pawl.FenceFromContext(lease.Context()); !ok || fence != lease.Fence() {
			t.Error("the context does not say the fence")
		}
		noError(t, lease.Release(ctx)) // although ctx is over
		isError(t, context.Cause(lease.Context()), pawl.ErrReleased)
		isError(t, lease.Err(), pawl.ErrReleased)
		w.free("x")
	})
}

func TestLabelsAreShownAndNothingIsLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.client(&pawl.Options{Labels: map[string]string{"job": "42"}})
		lease := must(t)(c.Mutex("x", pawl.WithLabel("try", "1")).Lock(background))
		e, err := c.Inspect(background, "x")
		noError(t, err)
		if got := fmt.Sprint(e.Holders[0].Owner.Labels); got != "map[job:42 try:1]" {
			t.Errorf("labels %s", got)
		}
		noError(t, lease.Release(background))
		synctest.Wait()
		if n := c.Gates() + c.Leases() + c.Inboxes(); n > 0 {
			t.Errorf("%d things were left behind", n)
		}
	})
}

func TestOptionThatIsNilChangesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.client(nil)
		m := c.Mutex("x", nil, pawl.WithLabel("try", "1"), nil)
		lease := must(t)(m.Lock(background))
		e, err := c.Inspect(background, "x")
		noError(t, err)
		if got := e.Holders[0].Owner.Labels["try"]; got != "1" {
			t.Errorf("label %q beside it", got)
		}
		noError(t, lease.Release(background))
	})
}

// Tokens are secrets of the client: whatever prints a client, a lock or a lease must not show them.
func TestNothingThatIsPrintedShowsAToken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		var tokens []driver.Token
		f.claimed = func(t driver.Token) { tokens = append(tokens, t) }
		m := c.Mutex("x")
		lease := must(t)(m.Lock(background))
		ctx, cancel := context.WithCancel(background)
		waits := make(chan error)
		go func() { _, err := c.Mutex("x").Lock(ctx); waits <- err }()
		time.Sleep(time.Second)
		_, held := c.Mutex("x").TryLock(background)
		e, _ := c.Inspect(background, "x")
		var printed strings.Builder
		fmt.Fprintln(&printed, lease.Context())
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&printed, strings.Repeat(verb+"\n", 7), c, m, lease, *m, &held, held, e)
		}
		for _, token := range tokens {
			for _, form := range []string{string(token[:]), fmt.Sprintf("%x", token[:]), strings.Trim(fmt.Sprintf("%d", token[:]), "[]")} {
				if strings.Contains(printed.String(), form) {
					t.Errorf("a token is shown as %q", form)
				}
			}
		}
		if len(tokens) != 2 {
			t.Errorf("%d claims were sent", len(tokens))
		}
		cancel()
		<-waits
	})
}
