package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memlock"
)

// The URL says where the locks are, and the program imports the package of its scheme.
// Locks in memory are for one process; sqlitelock, redislock and the other backends are
// for many.
func Example() {
	ctx := context.Background()
	locks, err := pawl.Open(ctx, "mem:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	err = locks.Mutex("report:nightly").Do(ctx, func(ctx context.Context) error {
		fence, _ := pawl.FenceOf(ctx, "report:nightly") // higher than the fence of any holder before
		return writeReport(ctx, fence)                  // ctx ends when the lock is lost
	})
	if err != nil { // if it matches pawl.ErrLost, another holder may have run at the same time
		log.Print(err)
	}
	// Output:
}

func writeReport(context.Context, uint64) error { return nil }

// Hold a lease without Do. The client renews it until it is released or lost.
func ExampleMutex_Lock() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close()

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

// Open by URL. The program imports the package of the URL's scheme.
func ExampleOpen() {
	ctx := context.Background()
	locks, err := pawl.Open(ctx, "mem:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	fmt.Println(locks.Properties().Backend)

	_, err = pawl.Open(ctx, "memcached://localhost", nil)
	fmt.Println(errors.Is(err, pawl.ErrInvalid))
	// Output:
	// memory
	// true
}

// Two clients of one backend exclude each other, as two processes do.
func ExampleNew() {
	ctx := context.Background()
	memory := memlock.NewMemory(nil)
	ours, _ := pawl.New(memory.Driver(), nil)
	defer ours.Close()
	theirs, _ := pawl.New(memory.Driver(), &pawl.Options{TTL: 10 * time.Second})
	defer theirs.Close()

	lease, _ := ours.Mutex("job").Lock(ctx)
	defer lease.Release(ctx)
	_, err := theirs.Mutex("job").TryLock(ctx)
	fmt.Println(errors.Is(err, pawl.ErrHeld))
	// Output: true
}

// Run a function under the lock, the simplest way. Its ctx ends if the lock is lost.
func ExampleMutex_Do() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close()

	err := locks.Mutex("report").Do(ctx, func(ctx context.Context) error {
		fmt.Println("alone")
		return ctx.Err()
	})
	fmt.Println(err)
	// Output:
	// alone
	// <nil>
}

// Run a scheduled job on one of many machines. The others skip the run.
func ExampleMutex_TryDo() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close()
	// The name stays held for a minute, so that a machine whose clock is late skips the
	// run, too.
	nightly := locks.Mutex("nightly", pawl.WithMinHold(time.Minute))

	for range 2 {
		ran, err := nightly.TryDo(ctx, func(context.Context) error { return nil })
		fmt.Println(ran, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}

// Take the lock from its holder. The client then notifies the holder.
func ExampleMutex_ForceLock() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close()
	first, _ := locks.Mutex("leader").Lock(ctx)

	second, err := locks.Mutex("leader").ForceLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer second.Release(ctx)
	<-first.Done()
	lost, _ := errors.AsType[*pawl.LostError](first.Err())
	fmt.Println(lost.Reason, second.Fence() > first.Fence())
	// Output: broken true
}

// Let the resource compare fences: it refuses a write with a smaller fence than it has
// seen.
func ExampleLease_Fence() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close()
	var seen uint64
	write := func(fence uint64) bool { // in SQL: UPDATE ... SET fence = $1 WHERE fence <= $1
		if fence < seen {
			return false
		}
		seen = fence
		return true
	}

	paused, _ := locks.Mutex("invoice:1042").Lock(ctx)
	next, _ := locks.Mutex("invoice:1042").ForceLock(ctx) // as if the first holder had been paused past its TTL
	defer next.Release(ctx)
	fmt.Println("the next one writes:", write(next.Fence()))
	fmt.Println("the one that was paused writes:", write(paused.Fence()))
	// Output:
	// the next one writes: true
	// the one that was paused writes: false
}

// Try without waiting. The error names a holder.
func ExampleMutex_TryLock() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close()
	m := locks.Mutex("nightly", pawl.WithLabel("run", "7"))
	lease, _ := m.TryLock(ctx)
	defer lease.Release(ctx)

	_, err := m.TryLock(ctx)
	if held, ok := errors.AsType[*pawl.HeldError](err); ok {
		fmt.Println("held by run", held.Holder.Owner.Labels["run"])
	}
	// Output: held by run 7
}

// Allow four exports at a time. This one counts as two.
func ExampleSemaphore() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close()

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

// Let many readers or one writer in.
func ExampleRWMutex() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close()
	catalog := locks.RWMutex("catalog")

	_ = catalog.RDo(ctx, func(ctx context.Context) error {
		return catalog.RDo(ctx, func(context.Context) error {
			ran, err := catalog.TryDo(ctx, func(context.Context) error { return nil })
			fmt.Println("the writer was skipped:", !ran, err)
			return nil
		})
	})
	// Output: the writer was skipped: true <nil>
}

// Read the holders and the waiters of a name.
func ExampleClient_Inspect() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close()
	lease, _ := locks.Mutex("nightly", pawl.WithLabel("run", "7")).Lock(ctx)
	defer lease.Release(ctx)

	e, _ := locks.Inspect(ctx, "nightly")
	fmt.Println(len(e.Holders), len(e.Waiters), e.Holders[0].Owner.Labels["run"])
	// Output: 1 0 7
}

// List the names in use that begin with a prefix.
func ExampleClient_List() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close()
	for _, name := range []string{"job:b", "job:a", "other"} {
		lease, _ := locks.Mutex(name).Lock(ctx)
		defer lease.Release(ctx)
	}

	for e, err := range locks.List(ctx, "job:") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Name)
	}
	// Output:
	// job:a
	// job:b
}

// Stop a service: functions that run may finish, for 20 seconds at most, and no new one
// begins.
func ExampleClient_Shutdown() {
	locks, _ := pawl.Open(context.Background(), "mem:", nil)
	started, done := make(chan struct{}), make(chan error)
	go func() {
		done <- locks.Mutex("import").Do(context.Background(), func(ctx context.Context) error {
			close(started)
			time.Sleep(10 * time.Millisecond)
			return ctx.Err() // nil, because Shutdown waits for the function
		})
	}()
	<-started

	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	fmt.Println("shutdown:", locks.Shutdown(ctx))
	fmt.Println("the import:", <-done)
	_, err := locks.Mutex("import").Lock(ctx)
	fmt.Println("another:", errors.Is(err, pawl.ErrClosed))
	// Output:
	// shutdown: <nil>
	// the import: <nil>
	// another: true
}

// Break the lease of a holder that hangs. The fence makes sure that it is this lease.
func ExampleClient_Break() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close()
	lease, _ := locks.Mutex("nightly").Lock(ctx)

	e, _ := locks.Inspect(ctx, "nightly")
	if err := locks.Break(ctx, "nightly", e.Holders[0].Fence, nil); err != nil {
		log.Fatal(err)
	}
	<-lease.Done()
	fmt.Println(errors.Is(lease.Err(), pawl.ErrLost))
	// Output: true
}

// Count the leases that are held, and the runs that were skipped.
func ExampleObserver() {
	ctx := context.Background()
	var held, skipped atomic.Int64
	locks, _ := pawl.Open(ctx, "mem:", &pawl.Options{Observer: &pawl.Observer{
		Acquired: func(pawl.AcquiredEvent) { held.Add(1) },
		Released: func(pawl.ReleasedEvent) { held.Add(-1) },
		Lost:     func(pawl.LostEvent) { held.Add(-1) },
		NotAcquired: func(e pawl.NotAcquiredEvent) {
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
	_ = locks.Shutdown(ctx) // holders finish first; with Close they would lose their leases
	fmt.Println("held:", held.Load(), "skipped:", skipped.Load())
	// Output:
	// ran: false held: 1
	// held: 0 skipped: 1
}

// Find the fence of each of two nested locks.
func ExampleFenceOf() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close()

	_ = locks.Mutex("account:7").Do(ctx, func(ctx context.Context) error {
		return locks.Mutex("audit").Do(ctx, func(ctx context.Context) error {
			account, _ := pawl.FenceOf(ctx, "account:7")
			audit, _ := pawl.FenceOf(ctx, "audit")
			fmt.Println(account > 0, audit > 0)
			return nil
		})
	})
	// Output: true true
}
