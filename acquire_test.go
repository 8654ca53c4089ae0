package pawl_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

func TestSlowLinkWorksWithoutRetries(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		f.latency = 300 * time.Millisecond
		began := time.Now()
		lease := must(t)(c.Mutex("x").Lock(background))
		noError(t, lease.Release(background))
		if took := time.Since(began); took > 601*time.Millisecond || f.count("acquire")+f.count("release") != 2 {
			t.Errorf("a cycle took %v and %d requests", took, f.count("acquire")+f.count("release"))
		}
	})
}

func TestReplyThatWasLostIsAskedForAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		lost := false
		f.set(nil, func(op string) error {
			if op == "acquire" && !lost {
				lost = true
				return errNet
			}
			return nil
		})
		lease := must(t)(c.Mutex("x").Lock(background))
		if e := w.entry("x"); len(e.Holders) != 1 || e.Holders[0].Fence != lease.Fence() || f.count("acquire") != 2 {
			t.Errorf("the grant that was made is not the one we have: %+v, fence %d", e, lease.Fence())
		}
		noError(t, lease.Release(background))
		w.free("x")
	})
}

func TestLatencyAboveTheTTLIsNoGrant(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(&pawl.Options{RequestTimeout: time.Minute})
		f.latency = 3 * time.Second
		_, err := c.Mutex("x", pawl.WithTTL(2*time.Second)).Lock(background)
		isError(t, err, pawl.ErrUnavailable)
		time.Sleep(time.Minute)
		w.free("x")
	})
}
