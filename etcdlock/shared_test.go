package etcdlock_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/etcdtest"
)

// Steps that many goroutines take at once share requests.
func TestManyAtOnceShareRequests(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	d := openDriver(t, c.URL())
	const goroutines, rounds = 64, 5
	cycles := func(rounds int) {
		var all sync.WaitGroup
		for i := range goroutines {
			all.Go(func() {
				for range rounds {
					m := mutex(fmt.Sprint("job", i))
					gets(t, d, m)
					releases(t, d, m)
				}
			})
		}
		all.Wait()
	}
	cycles(1) // new names are loaded first
	before := metric(t, c.Members[0], txns)
	cycles(rounds)
	each := (metric(t, c.Members[0], txns) - before) / (goroutines * rounds)
	t.Logf("%.2f requests a cycle", each)
	if each > 1 {
		t.Errorf("%.2f requests a cycle; want less than one", each)
	}
}

const txns = `grpc_server_handled_total{grpc_code="OK",grpc_method="Txn",grpc_service="etcdserverpb.KV",grpc_type="unary"}`

// One goroutine's cycle is two requests; most ticks of the clock go with them.
func TestACycleIsTwoRequests(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	d := openDriver(t, c.URL())
	cycle := func() {
		m := mutex("job")
		gets(t, d, m)
		releases(t, d, m)
	}
	// Before the client keeps the clock, and on a slow machine, more requests are sent.
	until(t, "the requests", func() error {
		const cycles, ticks = 10, 2 // a tick may come between, 7 times a second
		before := metric(t, c.Members[0], txns)
		for range cycles {
			cycle()
		}
		if sent := metric(t, c.Members[0], txns) - before; sent > 2*cycles+ticks {
			return fmt.Errorf("%v are sent for %d cycles", sent, cycles)
		}
		return nil
	})
}

// Two names wake one client in one request: etcd writes no key twice in a request.
func TestOneRequestWakesAClientTwice(t *testing.T) {
	nightly(t, "it waits for leases to end")
	t.Parallel()
	c := etcdtest.Start(t, 1)
	a, b := openDriver(t, c.URL()), openDriver(t, c.URL())
	var kept []driver.LeaseRef
	var heard []<-chan driver.Signal
	ttl := 4 * time.Second
	for try := 0; len(kept) < 2; try++ {
		name := fmt.Sprint("job", try)
		long, short, waiter := mutex(name), mutex(name), queued(mutex(name))
		for _, one := range []*driver.Claim{&long, &short, &waiter} {
			one.Weight, one.Limit, one.QueueTTL = 1, 2, time.Hour
		}
		long.TTL, short.TTL = time.Hour, ttl
		gets(t, a, long)
		gets(t, a, short)
		if _, err := b.Acquire(brief(t), waiter); !errors.Is(err, driver.ErrHeld) {
			if t.Logf("%v; want ErrHeld", err); try == 5 {
				t.Fatal("a waiter is never refused")
			}
			ttl *= 2 // the machine is slow: the short one had expired
			continue
		}
		kept, heard = append(kept, lease(long)), append(heard, hears(t, b, waiter.Token))
	}
	for i := 0; i < len(heard); { // a renewal after the short ones have expired wakes both
		each, err := a.Renew(brief(t), kept)
		for _, e := range append(each, err) {
			if e != nil {
				t.Fatal(e)
			}
		}
		select {
		case <-heard[i]:
			i++
		case <-time.After(ttl + time.Second):
		}
	}
}

// Hand-overs of many names at once, between two clients.
func TestManyNamesGoFromOneClientToTheOtherAtOnce(t *testing.T) {
	t.Parallel()
	url, _, _ := place(t)
	a, b := openDriver(t, url), openDriver(t, url)
	var all sync.WaitGroup
	for i := range 48 {
		all.Go(func() {
			holder, waiter := mutex(fmt.Sprint("job", i)), queued(mutex(fmt.Sprint("job", i)))
			first := gets(t, a, holder)
			refused(t, b, waiter)
			heard := hears(t, b, waiter.Token)
			releases(t, a, holder)
			hearsOfGrant(t, heard)
			if g := gets(t, b, waiter); g.Fence <= first.Fence {
				t.Errorf("fences %d, then %d; want them to rise", first.Fence, g.Fence)
			}
		})
	}
	all.Wait()
}

// A value that is too big to share a request goes by itself.
func TestBigNamesDoNotShareARequest(t *testing.T) {
	t.Parallel()
	url, _, _ := place(t)
	d := openDriver(t, url)
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			m := mutex(fmt.Sprint("job", i))
			m.Owner.Labels = map[string]string{}
			for k := range 8 {
				m.Owner.Labels[fmt.Sprint("label", k)] = strings.Repeat("x", 200)
			}
			gets(t, d, m)
			releases(t, d, m)
		})
	}
	all.Wait()
}
