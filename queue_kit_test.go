package pawl_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

// line is a group of waiters for one lock, and the order in which they had it.
type line struct {
	t    *testing.T
	wg   sync.WaitGroup
	mu   sync.Mutex
	past string
}

// join adds a waiter, which holds the lock for 1 ms.
func (l *line) join(who string, c *pawl.Client) {
	l.wg.Go(func() {
		lease := must(l.t)(c.Mutex("x").Lock(background))
		l.mu.Lock()
		l.past += who
		l.mu.Unlock()
		time.Sleep(time.Millisecond)
		noError(l.t, lease.Release(background))
	})
	synctest.Wait()
}

// lockWithFencesToSpare locks "x" with fences for three more waiters, who are there when
// it is granted, and have given up before it returns.
func lockWithFencesToSpare(t *testing.T, w *world, c *pawl.Client) *pawl.Lease {
	t.Helper()
	other, _ := w.client(nil)
	held := must(t)(other.Mutex("x").Lock(background))
	lock := func(ctx context.Context, got chan<- *pawl.Lease) {
		go func() {
			l, _ := c.Mutex("x").Lock(ctx)
			got <- l
		}()
		synctest.Wait()
	}
	before, cancelBefore := context.WithCancel(background)
	behind, cancelBehind := context.WithCancel(background)
	got, none := make(chan *pawl.Lease, 1), make(chan *pawl.Lease, 4)
	lock(before, none)
	lock(background, got)
	for range 3 {
		lock(behind, none)
	}
	cancelBefore()
	synctest.Wait()
	noError(t, held.Release(background))
	lease := <-got
	cancelBehind()
	for range 4 {
		if l := <-none; l != nil {
			t.Fatal("the wrong one was granted")
		}
	}
	return lease
}
