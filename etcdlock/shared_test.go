package etcdlock_test

import (
	"fmt"
	"sync"
	"testing"

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
					cycle(t, d, fmt.Sprint("job", i))
				}
			})
		}
		all.Wait()
	}
	cycles(1) // new names are loaded first
	before := metric(t, c.Members[0], txns)
	cycles(rounds)
	perCycle := (metric(t, c.Members[0], txns) - before) / (goroutines * rounds)
	t.Logf("%.2f requests a cycle", perCycle)
	if perCycle > 1.75 { // a cycle alone takes 2; on a busy machine fewer goroutines are ready at once
		t.Errorf("%.2f requests a cycle; want fewer than a cycle alone takes", perCycle)
	}
}

const txns = `grpc_server_handled_total{grpc_code="OK",grpc_method="Txn",grpc_service="etcdserverpb.KV",grpc_type="unary"}`

// A cycle costs two requests, which also write most ticks.
func TestACycleIsTwoRequests(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	d := openDriver(t, c.URL())
	// A client on a slow machine, or that does not write the ticks yet, sends more.
	until(t, "the requests", func() error {
		const cycles, ticks = 10, 2 // up to 7 ticks a second may need a request
		before := metric(t, c.Members[0], txns)
		for range cycles {
			cycle(t, d, "job")
		}
		if sent := metric(t, c.Members[0], txns) - before; sent > 2*cycles+ticks {
			return fmt.Errorf("%d cycles take %v requests", cycles, sent)
		}
		return nil
	})
}

// One client hands over many names to another at once.
func TestManyNamesGoFromOneClientToTheOtherAtOnce(t *testing.T) {
	t.Parallel()
	url, _, _ := ownPrefix(t)
	a, b := openDriver(t, url), openDriver(t, url)
	var all sync.WaitGroup
	for i := range 48 {
		all.Go(func() {
			holder, waiter := mutex(fmt.Sprint("job", i)), queued(fmt.Sprint("job", i))
			first := gets(t, a, holder)
			refused(t, b, waiter)
			signals := signalsFor(t, b, waiter.Token)
			releases(t, a, holder)
			awaitGrantSignal(t, signals)
			if g := gets(t, b, waiter); g.Fence <= first.Fence {
				t.Errorf("fences %d, then %d; want them to rise", first.Fence, g.Fence)
			}
		})
	}
	all.Wait()
}
