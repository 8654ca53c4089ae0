package drivertest

import (
	"errors"
	"sync"

	"github.com/pawl-go/pawl"
)

// locks makes a pawl.Client over a driver of its own.
func (k *kit) newClient(o *pawl.Options) *pawl.Client {
	k.Helper()
	if o == nil {
		o = steadyOptions
	}
	c, err := pawl.New(k.s.Open(k.T), o)
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

// ends closes a client, and so waits for the background work of its waiters.
func (k *kit) closeClient(c *pawl.Client) {
	k.Helper()
	if err := c.Close(); err != nil {
		k.Fatalf("Close: %v", err)
	}
}

// locksIt locks the kit's name.
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

// hears waits until the lease is lost, and wants this reason.
func (k *kit) wantLeaseLost(l *pawl.Lease, why pawl.Reason) *pawl.LostError {
	k.Helper()
	if _, ok := happens(k, l.Done()); !ok {
		k.Fatal("the holder never heard that its lease was lost")
	}
	var lost *pawl.LostError
	if err := l.Err(); !errors.As(err, &lost) || lost.Reason != why {
		k.Fatalf("Err: %v; want it lost, %v", err, why)
	}
	return lost
}

// throng runs f rounds times in each of n goroutines, spread over the clients.
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
