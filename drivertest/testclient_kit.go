package drivertest

import (
	"errors"
	"sync"

	"github.com/pawl-go/pawl"
)

// newClient makes a pawl.Client with a new driver.
func (k *kit) newClient(o *pawl.Options) *pawl.Client {
	k.Helper()
	if o == nil {
		o = steadyOptions
	}
	c, err := pawl.New(k.suite.Open(k.T), o)
	if err != nil {
		k.Fatalf("pawl.New: %v", err)
	}
	k.Cleanup(func() {
		if err := c.Close(); err != nil {
			k.Errorf("Close: %v", err)
		}
	})
	return c
}

// closeClient closes a client. Close waits for the background work of its waiters.
func (k *kit) closeClient(c *pawl.Client) {
	k.Helper()
	if err := c.Close(); err != nil {
		k.Fatalf("Close: %v", err)
	}
}

// mustLock locks the kit's name.
func (k *kit) mustLock(c *pawl.Client) *pawl.Lease {
	k.Helper()
	lease, err := c.Mutex(k.name).Lock(k.ctx)
	if err != nil {
		k.Fatalf("Lock: %v", err)
	}
	return lease
}

func (k *kit) mustUnlock(l *pawl.Lease) {
	k.Helper()
	if err := l.Release(k.ctx); err != nil {
		k.Fatalf("Release: %v", err)
	}
}

// wantLeaseLost waits until the lease is lost, and requires this reason.
func (k *kit) wantLeaseLost(l *pawl.Lease, why pawl.Reason) *pawl.LostError {
	k.Helper()
	if _, ok := waitFor(k, l.Done()); !ok {
		k.Fatal("the lease was not reported as lost")
	}
	var lost *pawl.LostError
	if err := l.Err(); !errors.As(err, &lost) || lost.Reason != why {
		k.Fatalf("Err: %v; want it lost, %v", err, why)
	}
	return lost
}

// runOnClients runs f in n goroutines, rounds times in each, spread over the clients.
func (k *kit) runOnClients(n, rounds int, clients []*pawl.Client, f func(*pawl.Client) error) {
	k.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for range rounds {
				if err := f(clients[i%len(clients)]); err != nil {
					k.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
