package drivertest

import (
	"context"
	"sync"

	"github.com/pawl-go/pawl"
)

// waiter is a client of its own with one goroutine that waits for the kit's name.
type waiter struct {
	k     *kit
	c     *pawl.Client
	ctx   *endable
	lease chan *pawl.Lease
	err   chan error
}

// waiter starts one, and returns when the backend has told it that others hold the name.
func (k *kit) waiter(o *pawl.Options) *waiter {
	k.Helper()
	if o == nil {
		o = &pawl.Options{}
	}
	told := make(chan struct{})
	var once sync.Once
	o.Observer = &pawl.Observer{Queued: func(pawl.QueuedEvent) { once.Do(func() { close(told) }) }}
	w := &waiter{k: k, c: k.locks(o), ctx: newEndable(k.ctx), lease: make(chan *pawl.Lease, 1), err: make(chan error, 1)}
	k.Cleanup(func() { w.ends(context.Canceled) })
	go func() {
		if lease, err := w.c.Mutex(k.name).Lock(w.ctx); err != nil {
			w.err <- err
		} else {
			w.lease <- lease
		}
	}()
	select {
	case <-told:
	case err := <-w.err:
		k.Fatalf("Lock: %v; want it to wait", err)
	case <-w.lease:
		k.Fatal("Lock did not wait")
	case <-k.ctx.Done():
		k.Fatal("Lock neither waited nor ended")
	}
	return w
}

// gets wants the waiter to be granted the name.
func (w *waiter) gets() *pawl.Lease {
	w.k.Helper()
	select {
	case lease := <-w.lease:
		return lease
	case err := <-w.err:
		w.k.Fatalf("Lock: %v; want it granted", err)
	case <-w.k.ctx.Done():
		w.k.Fatal("the waiter was not granted the name")
	}
	return nil
}

// fails wants the wait to end with an error.
func (w *waiter) fails() error {
	w.k.Helper()
	select {
	case <-w.lease:
		w.k.Fatal("the waiter was granted the name")
	case err := <-w.err:
		return err
	case <-w.k.ctx.Done():
		w.k.Fatal("the wait did not end")
	}
	return nil
}

// ends ends the ctx of the wait.
func (w *waiter) ends(err error) { w.ctx.end(err) }

// settles waits until the waiter's client has done what it does in the background.
func (w *waiter) settles() {
	w.k.Helper()
	w.k.ends(w.c)
}

// endable is a ctx that ends when it is told to, with any error: so a deadline passes
// exactly when a test has everything in place.
type endable struct {
	context.Context
	done chan struct{}
	once sync.Once
	err  error // written before done is closed
}

func newEndable(parent context.Context) *endable {
	return &endable{Context: context.WithoutCancel(parent), done: make(chan struct{})}
}

func (e *endable) end(err error) {
	e.once.Do(func() {
		e.err = err
		close(e.done)
	})
}

// Done implements context.Context.
func (e *endable) Done() <-chan struct{} { return e.done }

// Err implements context.Context.
func (e *endable) Err() error {
	select {
	case <-e.done:
		return e.err
	default:
		return nil
	}
}
