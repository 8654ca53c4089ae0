package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

func TestAClaimWhoseReplyIsLostIsRepeated(t *testing.T) {
	for how, lock := range map[string]func(*pawl.Mutex, context.Context) (*pawl.Lease, error){
		"lock": (*pawl.Mutex).Lock, "force": (*pawl.Mutex).ForceLock,
	} {
		runInWorld(t, how, func(t *testing.T, w *world) {
			c, net, other := w.twoWithNetwork()
			if how == "force" {
				must(other.Mutex("x").Lock(background))(t)
			}
			net.setHooks(nil, func(op string) error {
				if op == "acquire" && net.count(op) < 3 {
					return errNet
				}
				return nil
			})
			lease := must(lock(c.Mutex("x"), background))(t)
			if e := w.entry("x"); len(e.Holders) != 1 || e.Holders[0].Fence != lease.Fence() || net.count("acquire") != 3 {
				t.Errorf("the backend has %+v; want one lease with the fence %d, after three requests", e, lease.Fence())
			}
			noError(t, lease.Release(background))
			w.wantFree("x")
		})
	}
}

func TestAGrantThatArrivesAfterItsTTLIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, net := w.client(&pawl.Options{RequestTimeout: time.Minute})
		net.latency = 3 * time.Second
		isError(t, errOf(c.Mutex("x", pawl.WithTTL(2*time.Second)).Lock(background)), pawl.ErrUnavailable)
		time.Sleep(time.Minute)
		w.wantFree("x")
	})
}

// Until the backend has answered that the name is held, readers of one client do not wait
// for each other.
func TestATryOfAReaderIsNotRefusedBecauseAnotherReaderClaims(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, c *pawl.Client, net *network) {
		net.latency = 300 * time.Millisecond
		first := make(chan *pawl.Lease)
		go func() { first <- must(c.RWMutex("x").RLock(background))(t) }()
		time.Sleep(time.Millisecond)
		noError(t, must(c.RWMutex("x").TryRLock(background))(t).Release(background))
		noError(t, (<-first).Release(background))
		w.wantFree("x")
	})
}

func TestATryWhoseReplyIsLostIsReleased(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, c *pawl.Client, net *network) {
		net.setHooks(nil, failRequests("acquire"))
		_, err := c.Mutex("x").TryLock(background)
		isError(t, err, pawl.ErrUnavailable, errNet)
		if errors.Is(err, pawl.ErrHeld) {
			t.Error("the error of a failing backend matches ErrHeld")
		}
		w.wantFree("x")
	})
}
