package pawl_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

func TestAnotherProcessGoesOnWithADetachedLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(&pawl.Options{TTL: 9 * time.Second})
		b, _ := w.client(nil)
		c, _ := w.client(nil)
		lease := must(t)(a.Mutex("x").Lock(background))
		time.Sleep(time.Second)
		handle, err := lease.Detach(background)
		noError(t, err)
		isError(t, lease.Err(), pawl.ErrDetached)
		isError(t, lease.Release(background), pawl.ErrDetached)
		noError(t, a.Close(background))

		time.Sleep(8 * time.Second)
		_, err = c.Mutex("x").TryLock(background)
		isError(t, err, pawl.ErrHeld)
		again := must(t)(b.Attach(background, handle))
		if again.Fence() != lease.Fence() || again.Name() != "x" {
			t.Errorf("attached: %v", again)
		}
		time.Sleep(time.Minute)
		noError(t, again.Err()) // it is renewed
		_, err = c.Mutex("x").TryLock(background)
		isError(t, err, pawl.ErrHeld)
		noError(t, again.Release(background))
		w.free("x")

		_, err = b.Attach(background, handle)
		isError(t, err, pawl.ErrLost)
	})
}

func TestADetachedLeaseThatNobodyAttachesEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(&pawl.Options{TTL: 9 * time.Second})
		b, _ := w.client(nil)
		lease := must(t)(a.Mutex("x").Lock(background))
		handle, err := lease.Detach(background)
		noError(t, err)
		took, _ := after(func() error { must(t)(b.Mutex("x").Lock(background)); return nil })
		if took < 9*time.Second || took > 10*time.Second {
			t.Errorf("the next got it after %v", took)
		}
		_, err = a.Attach(background, handle)
		isError(t, err, pawl.ErrLost)
	})
}

func TestWhatIsNoHandleIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net := w.client(nil)
		handle, err := must(t)(a.Mutex("x").Lock(background)).Detach(background)
		noError(t, err)
		asked := net.count("renew")
		for _, bad := range []string{"", "x", handle[1:], handle[:len(handle)-4], strings.ToUpper(handle), "pawl1_e30", "pawl1_"} {
			_, err := a.Attach(background, bad)
			isError(t, err, pawl.ErrInvalid)
			if len(bad) > 1 && strings.Contains(err.Error(), bad) {
				t.Errorf("the error shows what may be a secret: %v", err)
			}
		}
		if net.count("renew") != asked {
			t.Error("the backend was asked")
		}
	})
}

func TestALeaseThatCannotBeConfirmedIsNotDetached(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net := w.client(nil)
		lease := must(t)(a.Mutex("x").Lock(background))
		up := net.down()
		_, err := lease.Detach(background)
		isError(t, err, pawl.ErrUnavailable)
		noError(t, lease.Err())
		up()
		time.Sleep(time.Hour)
		noError(t, lease.Err())
		noError(t, lease.Release(background))
	})
}
