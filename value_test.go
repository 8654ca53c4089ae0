package pawl_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

func (w *world) wantValue(name, want string, fence uint64) {
	w.t.Helper()
	if e := w.entry(name); string(e.Value) != want || e.ValueFence != fence {
		w.t.Errorf("%q keeps %q of fence %d, want %q of %d", name, e.Value, e.ValueFence, want, fence)
	}
}

func TestTheNameKeepsWhatItsHolderWrites(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.twoClients()
		lease := must(a.Mutex("x", pawl.WithValue([]byte("one"))).Lock(background))(t)
		w.wantValue("x", "one", lease.Fence())
		noError(t, lease.SetValue(background, []byte("two")))
		w.wantValue("x", "two", lease.Fence())
		noError(t, lease.Release(background))
		w.wantValue("x", "two", lease.Fence())
		isError(t, lease.SetValue(background, []byte("three")), pawl.ErrReleased)

		next := must(b.Mutex("x").Lock(background))(t)
		w.wantValue("x", "two", lease.Fence())
		noError(t, next.SetValue(background, nil))
		w.wantValue("x", "", next.Fence())
		isError(t, next.SetValue(background, make([]byte, 1025)), pawl.ErrInvalid)
	})
}

func TestAClaimThatIsNotAboveTheValueIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.twoClients()
		mutexOfKey := func(c *pawl.Client, key string) *pawl.Mutex {
			return c.Mutex("x", pawl.WithValue([]byte(key)), pawl.WithValueBelow([]byte(key)))
		}
		first := must(mutexOfKey(a, "5").Lock(background))(t)
		for _, key := range []string{"4", "5"} {
			_, err := mutexOfKey(b, key).Lock(background)
			isError(t, err, pawl.ErrValueNotBelow)
			refused, ok := errors.AsType[*pawl.ValueNotBelowError](err)
			if !ok || string(refused.Value) != "5" || refused.Fence != first.Fence() {
				t.Fatalf("Lock returns %+v, want the value 5 of the fence %d", refused, first.Fence())
			}
		}
		waited := make(chan error)
		go func() {
			_, err := mutexOfKey(b, "6").Lock(background)
			waited <- err
		}()
		synctest.Wait()
		noError(t, first.SetValue(background, []byte("7")))
		noError(t, first.Release(background))
		isError(t, <-waited, pawl.ErrValueNotBelow)
		w.wantFree("x")
	})
}

// An unanswered write may still arrive. A later write waits until it cannot.
func TestAValueIsNotOverwrittenByAnEarlierOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net := w.client(&pawl.Options{RequestTimeout: time.Second})
		lease := must(a.Mutex("x").Lock(background))(t)
		net.setHooks(nil, failRequests("renew"))
		isError(t, lease.SetValue(background, []byte("one")), pawl.ErrUnavailable)
		net.setHooks(nil, nil)
		took := must(timed(func() error { return lease.SetValue(background, []byte("two")) }))(t)
		wantWithin(t, "the second write, which waits for the end of the first, took", took, time.Second, 2*time.Second)
		w.wantValue("x", "two", lease.Fence())

		ctx, cancel := context.WithCancel(background)
		net.setHooks(nil, func(op string) error {
			if op == "renew" {
				cancel()
				return errNet
			}
			return nil
		})
		isError(t, lease.SetValue(ctx, []byte("three")), context.Canceled)
		isError(t, lease.SetValue(ctx, []byte("four")), context.Canceled)
	})
}

// If an attempt is refused for the value, an earlier attempt may still arrive. The client
// releases it.
func TestAClaimThatTheValueRefusesIsReleased(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net, b := w.twoWithNetwork()
		holder := must(b.Mutex("x", pawl.WithValue([]byte("7"))).Lock(background))(t)
		first := make(chan struct{})
		net.setHooks(func(op string) error {
			if op != "acquire" {
				return nil
			}
			select {
			case <-first:
				return nil
			default:
				close(first)
				return errNet // the client does not know that the request was lost
			}
		}, nil)
		isError(t, errOf(a.Mutex("x", pawl.WithValue([]byte("5")), pawl.WithValueBelow([]byte("5"))).Lock(background)), pawl.ErrValueNotBelow)
		synctest.Wait()
		time.Sleep(time.Minute)
		wantWithin(t, "releases, the second of them after the end of the attempt", net.count("release"), 2, 100)
		noError(t, holder.Release(background))
	})
}
