package pawl_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

// show is an entry in few words.
func show(e pawl.Entry) string {
	return fmt.Sprintf("%d hold, %d wait, closed %v, %q", len(e.Holders), len(e.Waiters), e.ClosedFor > 0, e.Value)
}

func TestWatchYieldsEachChange(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(&pawl.Options{TTL: 9 * time.Second})
		b, _ := w.client(nil)
		ctx, cancel := context.WithCancel(background)
		var seen []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			for e, err := range b.Watch(ctx, "x") {
				noError(t, err)
				seen = append(seen, show(e))
			}
		}()
		settle := func() { time.Sleep(10 * time.Second) }
		settle()
		lease := must(t)(a.Mutex("x", pawl.WithLockDelay(time.Minute)).Lock(background))
		settle() // renewed meanwhile
		noError(t, lease.SetValue(background, []byte("v")))
		settle()
		short, stop := context.WithTimeout(background, 20*time.Second)
		defer stop()
		go a.Mutex("x").Lock(short)
		settle()
		settle()
		settle()
		noError(t, a.Break(background, "x", lease.Fence(), time.Minute))
		settle()
		time.Sleep(time.Minute)
		cancel()
		<-done
		want := []string{
			`0 hold, 0 wait, closed false, ""`, `1 hold, 0 wait, closed false, ""`, `1 hold, 0 wait, closed false, "v"`,
			`1 hold, 1 wait, closed false, "v"`, `1 hold, 0 wait, closed false, "v"`, `0 hold, 0 wait, closed true, "v"`,
			`0 hold, 0 wait, closed false, "v"`,
		}
		if fmt.Sprint(seen) != fmt.Sprint(want) {
			t.Errorf("seen:\n%q\nwant:\n%q", seen, want)
		}
	})
}

func TestWatchEndsWithTheClientAndSaysWhatFails(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net := w.client(&pawl.Options{RetryFor: 3 * time.Second})
		net.set(nil, nil)
		last := make(chan error)
		go func() {
			var failed error
			for _, err := range a.Watch(background, "x") {
				failed = err
			}
			last <- failed
		}()
		synctest.Wait()
		noError(t, a.Close(background))
		isError(t, <-last, pawl.ErrClosed)
		for _, err := range a.Watch(background, "a\x00b") {
			isError(t, err, pawl.ErrInvalid)
		}
	})
}
