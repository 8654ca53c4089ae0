package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// Until the backend has said that the name is held, readers do not wait for each other,
// whether they try or wait.
func TestTryOfAReaderIsNotRefusedBecauseAnotherReaderIsAsking(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		f.latency = 300 * time.Millisecond
		first := make(chan *pawl.Lease)
		go func() { first <- must(t)(c.RWMutex("x").RLock(background)) }()
		time.Sleep(time.Millisecond)
		noError(t, must(t)(c.RWMutex("x").TryRLock(background)).Release(background))
		noError(t, (<-first).Release(background))
		w.free("x")
	})
}

func TestReplyOfATryThatWasLostIsTakenBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		f.set(nil, func(op string) error {
			if op == "acquire" {
				return errNet
			}
			return nil
		})
		_, err := c.Mutex("x").TryLock(background)
		isError(t, err, pawl.ErrUnavailable, errNet)
		if errors.Is(err, pawl.ErrHeld) {
			t.Error("a failing backend looks like a held lock")
		}
		w.free("x")
	})
}

// Sockets have deadlines of their own, and may end a call at the deadline of ctx before
// ctx itself ends.
func TestDeadlineOfATryIsSaidAsSuch(t *testing.T) {
	for range 20 {
		inWorld(t, func(t *testing.T, w *world) {
			f := &socket{faulty: &faulty{Driver: w.memory.Driver()}}
			c, err := pawl.New(f, nil)
			noError(t, err)
			defer c.Close(background)
			ctx, cancel := context.WithDeadline(background, time.Now().Add(time.Second))
			defer cancel()
			_, err = c.Mutex("x").TryLock(ctx)
			isError(t, err, context.DeadlineExceeded)
		})
	}
}
