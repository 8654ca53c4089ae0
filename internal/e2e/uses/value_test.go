package uses_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

func TestANameKeepsWhatItsHolderWrites(t *testing.T) {
	onEach(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		a, other := b.client(t, nil), b.client(t, nil)
		keeps := func(want string, fence uint64) {
			t.Helper()
			if e := entry(t, other, name); string(e.Value) != want || e.ValueFence != fence {
				t.Errorf("it keeps %q of fence %d, want %q of %d", e.Value, e.ValueFence, want, fence)
			}
		}
		lease := must(a.Mutex(name, pawl.WithValue([]byte("one"))).Lock(soon(t)))(t)
		keeps("one", lease.Fence())
		noError(t, lease.SetValue(soon(t), []byte("two\x00\xff")))
		noError(t, lease.Release(background))
		keeps("two\x00\xff", lease.Fence())
		isError(t, lease.SetValue(soon(t), []byte("three")), pawl.ErrReleased)
		next := must(other.Mutex(name).Lock(soon(t)))(t)
		keeps("two\x00\xff", lease.Fence())
		noError(t, next.SetValue(soon(t), nil))
		keeps("", next.Fence())
	})
}

func TestAClaimThatIsNotAboveTheValueIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		a, other := b.client(t, nil), b.client(t, nil)
		at := func(c *pawl.Client, key string) *pawl.Mutex {
			return c.Mutex(name, pawl.WithValue([]byte(key)), pawl.WithAbove([]byte(key)))
		}
		first := must(at(a, "5").Lock(soon(t)))(t)
		for _, key := range []string{"4", "5"} {
			_, err := at(other, key).Lock(soon(t))
			if refused, _ := errors.AsType[*pawl.ValueNotGreaterError](err); refused == nil || string(refused.Value) != "5" || refused.Fence != first.Fence() {
				t.Fatalf("%s: %v", key, err)
			}
		}
		waited := make(chan error, 1)
		go func() {
			_, err := at(other, "6").Lock(soon(t))
			waited <- err
		}()
		waiters(t, a, name, 1)
		noError(t, first.SetValue(soon(t), []byte("7")))
		noError(t, first.Release(background))
		isError(t, get(t, waited, "the end of the wait"), pawl.ErrValueNotGreater)
		free(t, a, name)
	})
}

// An unhealthy holder's lease is not renewed. The holder learns the reason, and the next
// claim gets the lock.
func TestAHolderThatIsNotHealthyMakesRoom(t *testing.T) {
	sick := errors.New("no heartbeat for 10 s")
	onEach(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		a, other := b.client(t, &pawl.Options{TTL: 3 * time.Second, RequestTimeout: 2 * time.Second}), b.client(t, nil)
		lease := must(a.Mutex(name, pawl.WithHealth(func(context.Context) error { return sick })).Lock(soon(t)))(t)
		next := must(other.Mutex(name).Lock(soon(t)))(t)
		lost, _ := errors.AsType[*pawl.LostError](lease.Err())
		if lost == nil || lost.Reason != pawl.ReasonUnhealthy || !errors.Is(lost, sick) || next.Fence() <= lease.Fence() {
			t.Errorf("it was lost with %v, and the next one has %d", lease.Err(), next.Fence())
		}
	})
}
