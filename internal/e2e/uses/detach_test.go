package uses_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

func TestAnotherClientGoesOnWithADetachedLease(t *testing.T) {
	onEach(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		a, next, other := b.client(t, nil), b.client(t, nil), b.client(t, nil)
		lease := must(a.Mutex(name).Lock(soon(t)))(t)
		handle := must(lease.Detach(soon(t)))(t)
		isError(t, lease.Release(background), pawl.ErrDetached)
		noError(t, a.Close())

		again := must(next.Attach(soon(t), handle))(t)
		if again.Fence() != lease.Fence() || again.Name() != name {
			t.Errorf("attached: %v", again)
		}
		noError(t, again.Confirm(soon(t)))
		_, err := other.Mutex(name).TryLock(soon(t))
		isError(t, err, pawl.ErrHeld)
		noError(t, again.SetValue(soon(t), []byte("v")))
		noError(t, again.Release(background))
		if e := entry(t, other, name); string(e.Value) != "v" || e.ValueFence != lease.Fence() {
			t.Errorf("it left %+v", e)
		}
		lease = must(other.Mutex(name).TryLock(soon(t)))(t)
		_, err = next.Attach(soon(t), handle)
		isError(t, err, pawl.ErrLost)
		noError(t, lease.Confirm(soon(t))) // the old handle has not harmed it
	})
}

// Two clients that attach one handle hold one lease. When one of them releases it, it
// ends for both.
func TestTwoThatAttachOneHandle(t *testing.T) {
	onEach(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		handle := must(must(b.client(t, nil).Mutex(name).Lock(soon(t)))(t).Detach(soon(t)))(t)
		one := must(b.client(t, nil).Attach(soon(t), handle))(t)
		two := must(b.client(t, nil).Attach(soon(t), handle))(t)
		if one.Fence() != two.Fence() {
			t.Errorf("%v and %v", one, two)
		}
		noError(t, one.Release(background))
		isError(t, two.Confirm(soon(t)), pawl.ErrLost)
		isError(t, two.Release(background), pawl.ErrLost)
		lease := must(b.client(t, nil).Mutex(name).TryLock(soon(t)))(t)
		noError(t, lease.Release(background))
	})
}

func TestADetachedLeaseThatNobodyAttachesEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: it waits for real time")
	}
	onEach(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		// Detach renews, and loses the lease if that has no answer.
		a, other := b.client(t, &pawl.Options{TTL: 4 * time.Second, RequestTimeout: 3 * time.Second}), b.client(t, nil)
		handle := must(must(a.Mutex(name).Lock(soon(t)))(t).Detach(soon(t)))(t)
		lease := must(other.Mutex(name).Lock(soon(t)))(t)
		_, err := a.Attach(soon(t), handle)
		isError(t, err, pawl.ErrLost)
		noError(t, lease.Confirm(soon(t)))
	})
}

func TestConfirmFindsWhatNobodyHasTold(t *testing.T) {
	onEach(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		a, other := b.client(t, nil), b.client(t, nil)
		lease := must(a.Mutex(name).Lock(soon(t)))(t)
		noError(t, lease.Confirm(soon(t)))
		forced := must(other.Mutex(name).ForceLock(soon(t)))(t)
		isError(t, lease.Confirm(soon(t)), pawl.ErrLost)
		isError(t, lease.Err(), pawl.ErrLost)
		noError(t, forced.Confirm(soon(t)))
	})
}

// A client refuses a handle of another kind of backend. A handle of another server of the
// same kind is not held there. Neither harms the lease, or the holder of the name on the
// other server.
func TestAHandleOfAnotherServer(t *testing.T) {
	onEach(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		lease := must(b.client(t, nil).Mutex(name).Lock(soon(t)))(t)
		handle := must(lease.Detach(soon(t)))(t)
		for _, other := range backends {
			c := clientOf(t, other.open(t, "elsewhere"), nil)
			holder := must(c.Mutex(name).Lock(soon(t)))(t)
			_, err := c.Attach(soon(t), handle)
			switch {
			case other.kind == b.kind:
				isError(t, err, pawl.ErrLost)
				lost, _ := errors.AsType[*pawl.LostError](err)
				if told := lost.Err != nil; told != (b.kind != "memory") {
					t.Errorf("%s: %v", other.name, err) // two memories have no addresses
				}
			default:
				isError(t, err, pawl.ErrInvalid)
				if !strings.Contains(err.Error(), b.kind) || !strings.Contains(err.Error(), other.kind) {
					t.Errorf("%s: %v", other.name, err)
				}
			}
			noError(t, holder.Confirm(soon(t)))
			noError(t, holder.Release(background))
		}
		again := must(b.client(t, nil).Attach(soon(t), handle))(t)
		noError(t, again.Release(background))
	})
}
