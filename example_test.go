package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
	_ "github.com/pawl-go/pawl/memlock"
	_ "github.com/pawl-go/pawl/sqlitelock" // for URLs that begin with sqlite:
)

// The README shows this one. It has no output to check, because it writes where only a service should.
func Example() {
	ctx := context.Background()
	locks, err := pawl.Open(ctx, "sqlite:/var/lib/app/locks.db", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	err = locks.Mutex("report:nightly").Do(ctx, func(ctx context.Context) error {
		fence, _ := pawl.FenceFromContext(ctx) // higher than that of any holder before
		return writeReport(ctx, fence)         // ctx ends when the lock is lost
	})
	switch {
	case errors.Is(err, pawl.ErrLost):
		log.Print("another may have run beside it: ", err)
	case err != nil: // writeReport's own, or the lock could not be had
		log.Print(err)
	}
}

func writeReport(context.Context, uint64) error { return nil }

// A lease to hold on to: it is renewed until it is released, or lost.
func ExampleMutex_Lock() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close(ctx)

	lease, err := locks.Mutex("invoice:1042").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release(ctx)

	select {
	case <-lease.Done():
		fmt.Println("stop:", lease.Err())
	default:
		fmt.Println("working on", lease.Name())
	}
	// Output: working on invoice:1042
}

// A try does not wait: the error says who is in the way.
func ExampleMutex_TryLock() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close(ctx)
	m := locks.Mutex("nightly", pawl.WithLabel("run", "7"))
	lease, _ := m.TryLock(ctx)
	defer lease.Release(ctx)

	_, err := m.TryLock(ctx)
	if held, ok := errors.AsType[*pawl.HeldError](err); ok {
		fmt.Println("held by run", held.Holders[0].Owner.Labels["run"])
	}
	// Output: held by run 7
}

// At most four exports at once; this one counts as two.
func ExampleSemaphore() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close(ctx)

	lease, err := locks.Semaphore("exports", 4).Acquire(ctx, 2)
	if err != nil {
		log.Fatal(err)
	}
	_, err = locks.Semaphore("exports", 4).TryAcquire(ctx, 3)
	fmt.Println("three more:", errors.Is(err, pawl.ErrHeld))
	fmt.Println("released:", lease.Release(ctx))
	// Output:
	// three more: true
	// released: <nil>
}

// Many readers, or one writer.
func ExampleRWMutex() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close(ctx)
	catalog := locks.RWMutex("catalog")

	_ = catalog.RDo(ctx, func(ctx context.Context) error {
		return catalog.RDo(ctx, func(context.Context) error {
			ran, err := catalog.TryDo(ctx, func(context.Context) error { return nil })
			fmt.Println("the writer was skipped:", !ran, errors.Is(err, pawl.ErrHeld))
			return nil
		})
	})
	// Output: the writer was skipped: true true
}

// Breaking a lease whose holder hangs: by its fence, so that nobody else is hit.
func ExampleClient_Break() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close(ctx)
	lease, _ := locks.Mutex("nightly").Lock(ctx)

	e, _ := locks.Inspect(ctx, "nightly")
	if err := locks.Break(ctx, "nightly", e.Holders[0].Fence, 5*time.Second); err != nil {
		log.Fatal(err)
	}
	<-lease.Done()
	fmt.Println(errors.Is(lease.Err(), pawl.ErrLost))
	// Output: true
}

// A gauge of what is held, and a count of the runs that were skipped.
func ExampleObserver() {
	ctx := context.Background()
	var held, skipped atomic.Int64
	locks, _ := pawl.Open(ctx, "mem:", &pawl.Options{Observer: &pawl.Observer{
		Acquired: func(pawl.AcquiredEvent) { held.Add(1) },
		Released: func(pawl.ReleasedEvent) { held.Add(-1) },
		Lost:     func(pawl.LostEvent) { held.Add(-1) },
		Refused: func(e pawl.RefusedEvent) {
			if e.Try && errors.Is(e.Err, pawl.ErrHeld) {
				skipped.Add(1)
			}
		},
	}})
	nightly := locks.Mutex("nightly")

	_ = nightly.Do(ctx, func(ctx context.Context) error {
		ran, _ := nightly.TryDo(ctx, func(context.Context) error { return nil })
		fmt.Println("ran:", ran, "held:", held.Load())
		return nil
	})
	_ = locks.Shutdown(ctx) // those at work finish first; Close would take their leases away
	fmt.Println("held:", held.Load(), "skipped:", skipped.Load())
	// Output:
	// ran: false held: 1
	// held: 0 skipped: 1
}

// Inside another lock, each name has a fence of its own.
func ExampleFenceOf() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close(ctx)

	_ = locks.Mutex("account:7").Do(ctx, func(ctx context.Context) error {
		return locks.Mutex("audit").Do(ctx, func(ctx context.Context) error {
			account, _ := pawl.FenceOf(ctx, "account:7")
			audit, _ := pawl.FenceOf(ctx, "audit")
			innermost, _ := pawl.FenceFromContext(ctx)
			fmt.Println(account > 0, audit == innermost)
			return nil
		})
	})
	// Output: true true
}
