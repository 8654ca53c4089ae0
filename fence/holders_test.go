package fence_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/fence"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/fencetest"
	"github.com/pawl-go/pawl/memlock"
)

// A held permit is good even if another permit has a higher fence.
func TestHoldersAcceptsHeldPermitsAndReaders(t *testing.T) {
	client, sleep := fencetest.NewMemoryClients(t)
	guard := fence.Holders{Locks: client()}
	wantHeld := func(name string, lease *pawl.Lease) {
		t.Helper()
		left, err := guard.Check(t.Context(), name, lease.Fence())
		if err != nil || left <= 0 || left > time.Minute {
			t.Errorf("Check(%q, %d) = %v, %v; want up to a minute", name, lease.Fence(), left, err)
		}
	}
	wantStale := func(name string, lease *pawl.Lease, last uint64) {
		t.Helper()
		_, err := guard.Check(t.Context(), name, lease.Fence())
		fencetest.WantStale(t, err, name, lease.Fence(), last)
	}
	permit := func() *pawl.Lease {
		return must(client().Semaphore("exports", 2, pawl.WithTTL(time.Minute)).TryAcquire(t.Context(), 1))(t)
	}
	one, two := permit(), permit()
	wantHeld("exports", one)
	wantHeld("exports", two)
	noError(t, one.Release(t.Context()))
	wantStale("exports", one, two.Fence())
	three := permit()
	wantHeld("exports", two)
	wantHeld("exports", three)
	sleep(time.Minute)
	wantStale("exports", two, three.Fence())

	reader := must(client().RWMutex("rates", pawl.WithTTL(time.Minute)).RLock(t.Context()))(t)
	delayed := must(client().RWMutex("rates", pawl.WithTTL(time.Minute), pawl.WithMinHold(time.Second)).RLock(t.Context()))(t)
	wantHeld("rates", reader)
	wantHeld("rates", delayed)
	if err := delayed.Release(t.Context()); err != nil { // the lease stays for its minimum hold
		t.Fatal(err)
	}
	wantStale("rates", delayed, delayed.Fence())
	wantStale("other", reader, 0) // on another name

	fencetest.ChecksArguments(t, func(resource string, f uint64) error {
		return guard.Guard(t.Context(), resource, f, func(context.Context) error { return nil })
	})
}

// A client passes a lease on from one user to the next. Each user has its own fence.
func TestHoldersAcceptsTheFencesOfARange(t *testing.T) {
	client, _ := fencetest.NewMemoryClients(t)
	locks := client()
	guard := fence.Holders{Locks: client()}
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			if err := locks.Mutex("account").Do(context.Background(), func(ctx context.Context) error {
				f, _ := pawl.FenceOf(ctx, "account")
				_, err := guard.Check(ctx, "account", f)
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// If a write ends after the end of its lease, Guard checks the lease again.
func TestHoldersBoundsAWrite(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		locks := must(pawl.New(memlock.New(nil), nil))(t)
		defer locks.Close()
		lease := must(locks.Semaphore("exports", 2, pawl.WithTTL(10*time.Second)).Acquire(t.Context(), 1))(t)
		guard := fence.Holders{Locks: locks}
		write := func(meanwhile func()) error {
			return guard.Guard(t.Context(), "exports", lease.Fence(), func(ctx context.Context) error {
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), pawl.ErrStale) {
					t.Errorf("the ctx of write ended with %v, want ErrStale", context.Cause(ctx))
				}
				meanwhile()
				return nil
			})
		}
		began := time.Now()
		if err := write(func() {}); err != nil { // the lease was renewed in time
			t.Error(err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the ctx of write ended after %v, want 10 s at most", took)
		}
		fencetest.WantStale(t, write(func() { _ = lease.Release(t.Context()) }), "exports", lease.Fence(), 0)
		errFull := errors.New("full")
		other := must(locks.Semaphore("exports", 2).Acquire(t.Context(), 1))(t)
		if err := guard.Guard(t.Context(), "exports", other.Fence(), func(context.Context) error { return errFull }); !errors.Is(err, errFull) {
			t.Error(err)
		}
	})
}

func TestHandlerWithHoldersRefusesReleasedPermits(t *testing.T) {
	client, _ := fencetest.NewMemoryClients(t)
	locks := client()
	service := httptest.NewServer(fence.Handler(fence.Holders{Locks: locks}, nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer service.Close()
	sender := &http.Client{Transport: &fence.Transport{Resource: func(*http.Request) string { return "exports" }}}
	send := func(method string, ctx context.Context) error {
		answer := must(sender.Do(must(http.NewRequestWithContext(context.WithoutCancel(ctx), method, service.URL, nil))(t)))(t)
		defer answer.Body.Close()
		if err := fence.ResponseError(answer); err != nil {
			return err
		}
		_, err := io.Copy(io.Discard, answer.Body)
		return err
	}
	one := must(client().Semaphore("exports", 2).Acquire(t.Context(), 1))(t)
	two := must(client().Semaphore("exports", 2).Acquire(t.Context(), 1))(t)
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		for _, lease := range []*pawl.Lease{two, one, two} {
			if err := send(method, lease.Context()); err != nil {
				t.Errorf("%s of a permit: %v", method, err)
			}
		}
	}
	ctx := one.Context()
	noError(t, one.Release(t.Context()))
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		fencetest.WantStale(t, send(method, ctx), "exports", one.Fence(), two.Fence())
	}
	noError(t, locks.Close())
	if err := send(http.MethodPost, two.Context()); !errors.Is(err, pawl.ErrUnavailable) {
		t.Errorf("a service whose client is closed: %v; want ErrUnavailable", err)
	}
}
