package uses_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// show returns an entry in a few words.
func show(e pawl.Entry) string {
	return fmt.Sprintf("%d hold, %d wait, closed %v, %q", len(e.Holders), len(e.Waiters), e.ClosedFor > 0, e.Value)
}

// A watch may skip quick changes. So each step waits until the watch has shown it.
func TestWatchYieldsEachChange(t *testing.T) {
	onEach(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		a, other, watcher := b.client(t, nil), b.client(t, nil), b.client(t, nil)
		ctx, stop := context.WithCancel(background)
		defer stop()
		seen, over := make(chan string, 100), make(chan struct{})
		go func() {
			defer close(over)
			for e, err := range watcher.Watch(ctx, name) {
				if err != nil {
					t.Error(err)
				}
				seen <- show(e)
			}
		}()
		sees := func(want string) {
			t.Helper()
			if got := get(t, seen, want); got != want {
				t.Fatalf("it saw %s, want %s", got, want)
			}
		}
		sees(`0 hold, 0 wait, closed false, ""`)
		lease := must(a.Mutex(name).Lock(soon(t)))(t)
		sees(`1 hold, 0 wait, closed false, ""`)
		noError(t, lease.SetValue(soon(t), []byte("v")))
		sees(`1 hold, 0 wait, closed false, "v"`)
		waits, giveUp := context.WithCancel(background)
		gave := make(chan error, 1)
		go func() {
			_, err := other.Mutex(name).Lock(waits)
			gave <- err
		}()
		sees(`1 hold, 1 wait, closed false, "v"`)
		giveUp()
		isError(t, get(t, gave, "the end of the wait"), context.Canceled)
		sees(`1 hold, 0 wait, closed false, "v"`)
		noError(t, other.Break(background, name, lease.Fence(), &pawl.BreakOptions{Delay: time.Hour}))
		sees(`0 hold, 0 wait, closed true, "v"`)
		stop()
		get(t, over, "the end of Watch")

		last := make(chan error, 1)
		go func() {
			var failed error
			for _, err := range watcher.Watch(background, name) {
				failed = err
			}
			last <- failed
		}()
		noError(t, watcher.Close())
		isError(t, get(t, last, "its end with the client"), pawl.ErrClosed)
	})
}
