package memlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/memlock"
)

// The goroutines of one process share a lock.
func ExampleNew() {
	ctx := context.Background()
	locks, err := pawl.New(memlock.New(nil), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	fmt.Println(locks.Mutex("job").Do(ctx, func(context.Context) error { return nil }))
	// Output: <nil>
}

// Several clients of one memory exclude each other, like processes that use one server.
func ExampleNewMemory() {
	ctx := context.Background()
	memory := memlock.NewMemory(nil)
	one, _ := pawl.New(memory.Driver(), nil)
	defer one.Close()
	two, _ := pawl.New(memory.Driver(), nil)
	defer two.Close()

	lease, _ := one.Mutex("job").Lock(ctx)
	_, err := two.Mutex("job").TryLock(ctx)
	fmt.Println(errors.Is(err, pawl.ErrHeld))
	_ = lease.Release(ctx)
	_, err = two.Mutex("job").TryLock(ctx)
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

// With its own clock, a test reaches the instant at which a lease expires.
func ExampleClock() {
	ctx := context.Background()
	clock := memlock.NewClock(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	d := memlock.New(&memlock.Options{Now: clock.Now})
	defer d.Close()
	claim := driver.Claim{
		Name: "job", Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: 30 * time.Second,
	}
	if _, err := d.Acquire(ctx, claim); err != nil {
		log.Fatal(err)
	}
	holders := func() int {
		e, _ := d.Inspect(ctx, "job")
		return len(e.Holders)
	}

	clock.Advance(30*time.Second - time.Microsecond)
	fmt.Println("just before:", holders())
	clock.Advance(time.Microsecond)
	fmt.Println("then:", holders())
	// Output:
	// just before: 1
	// then: 0
}
