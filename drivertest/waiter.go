package drivertest

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
)

// waiter is a new client with one goroutine that waits for the kit's name.
type waiter struct {
	k     *kit
	c     *pawl.Client
	ctx   *endableCtx
	ended chan outcome
}

// outcome is the outcome of the wait.
type outcome struct {
	lease *pawl.Lease
	err   error
}

// startWaiter starts a waiter, and returns after the backend's first answer "held".
func (k *kit) startWaiter(o *pawl.Options) *waiter {
	k.Helper()
	if o == nil {
		o = &pawl.Options{}
	}
	isQueued := make(chan struct{})
	var once sync.Once
	o.Observer = &pawl.Observer{Queued: func(pawl.QueuedEvent) { once.Do(func() { close(isQueued) }) }}
	w := &waiter{k: k, c: k.newClient(o), ctx: newEndableCtx(k.ctx), ended: make(chan outcome, 1)}
	k.Cleanup(func() { w.endCtx(context.Canceled) })
	go func() {
		lease, err := w.c.Mutex(k.name).Lock(w.ctx)
		w.ended <- outcome{lease, err}
	}()
	select {
	case <-isQueued:
	case o := <-w.ended:
		k.Fatalf("Lock ended with %v; want it to wait", o.err)
	case <-time.After(k.clientPatience()):
		k.ownWaits.Add(int64(k.clientPatience()))
		k.Fatal("Lock neither waited nor ended")
	}
	return w
}

// wantGranted requires that the waiter gets the name.
func (w *waiter) wantGranted() *pawl.Lease {
	w.k.Helper()
	o, ok := waitFor(w.k, w.ended)
	if !ok {
		w.k.Fatal("the waiter was not granted the name")
	}
	if o.err != nil {
		w.k.Fatalf("Lock: %v; want it granted", o.err)
	}
	return o.lease
}

// wantError requires that the wait ends with an error.
func (w *waiter) wantError() error {
	w.k.Helper()
	o, ok := waitFor(w.k, w.ended)
	if !ok {
		w.k.Fatal("the wait did not end")
	}
	if o.err == nil {
		w.k.Fatal("the waiter was granted the name")
	}
	return o.err
}

// endCtx ends the ctx of the wait.
func (w *waiter) endCtx(err error) { w.ctx.end(err) }

// settle waits until the waiter's client has finished its background work.
func (w *waiter) settle() {
	w.k.Helper()
	w.k.closeClient(w.c)
}

// endableCtx is a ctx that a test ends with any error, so that a deadline passes at the
// right moment.
type endableCtx struct {
	context.Context
	done chan struct{}
	once sync.Once
	err  error // written before done is closed
}

func newEndableCtx(parent context.Context) *endableCtx {
	return &endableCtx{Context: context.WithoutCancel(parent), done: make(chan struct{})}
}

func (e *endableCtx) end(err error) {
	e.once.Do(func() {
		e.err = err
		close(e.done)
	})
}

// Done implements context.Context.
func (e *endableCtx) Done() <-chan struct{} { return e.done }

// Err implements context.Context.
func (e *endableCtx) Err() error {
	select {
	case <-e.done:
		return e.err
	default:
		return nil
	}
}
