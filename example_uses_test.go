package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/pawl-go/pawl"
	_ "github.com/pawl-go/pawl/memlock"
)

// Each instance runs this code, and one of them leads.
func ExampleClient_Election() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close()

	election := locks.Election("scheduler", pawl.WithTTL(5*time.Second), pawl.WithValue([]byte("10.0.0.7:8080")))
	err := election.Run(ctx, func(ctx context.Context) error {
		leader, err := election.Leader(ctx) // any instance may ask
		term, _ := pawl.FenceOf(ctx, "scheduler")
		fmt.Printf("%s leads, %v\n", leader.Value, leader.Term == term)
		return err // after the return this instance no longer leads
	})
	fmt.Println(err)
	// Output:
	// 10.0.0.7:8080 leads, true
	// <nil>
}

// Run each tick of a schedule on exactly one instance, even if their clocks differ.
func ExampleClient_Once() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close()

	tick := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	for _, instance := range []string{"one", "two"} {
		ran, err := locks.Once("report").Do(ctx, pawl.TimeKey(tick), func(context.Context) error {
			fmt.Println("report, by instance", instance)
			return nil
		})
		fmt.Println(ran, err)
	}
	// Output:
	// report, by instance one
	// true <nil>
	// false <nil>
}

// Lock two accounts, and a third name as a reader: all of them or none.
func ExampleAll() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close()

	transfer := pawl.All(locks.Mutex("account:7"), locks.Mutex("account:3"), locks.RWMutex("rates").RLocker())
	err := transfer.Do(ctx, func(ctx context.Context) error {
		_, mine := pawl.FenceOf(ctx, "account:3")
		fmt.Println("transferred", mine)
		return nil
	})
	fmt.Println(err)
	// Output:
	// transferred true
	// <nil>
}

// Pass a lease from one process to another, such as the next step of a build.
func ExampleClient_Attach() {
	ctx := context.Background()
	one, _ := pawl.Open(ctx, "mem:ci", nil)
	lease, _ := one.Mutex("deploy").Lock(ctx)
	handle, _ := lease.Detach(ctx) // a secret, which does not print itself; string(handle) shows it
	fmt.Println(lease.Err())
	_ = one.Close()

	two, _ := pawl.Open(ctx, "mem:ci", nil)
	defer two.Close()
	again, err := two.Attach(ctx, handle)
	fmt.Println(again.Fence() == lease.Fence(), err)
	fmt.Println(again.Release(ctx))
	// Output:
	// pawl: lease detached
	// true <nil>
	// <nil>
}

// Watch a name, for example to show its holder on a page.
func ExampleClient_Watch() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close()

	for entry, err := range locks.Watch(ctx, "report") {
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Println(len(entry.Holders), "hold it")
		if len(entry.Holders) > 0 {
			break
		}
		go locks.Mutex("report").Lock(ctx)
	}
	// Output:
	// 0 hold it
	// 1 hold it
}

// Ask the backend right before a step that cannot be undone.
func ExampleLease_Confirm() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close()

	lease, _ := locks.Mutex("rocket").Lock(ctx)
	defer lease.Release(ctx)
	if err := lease.Confirm(ctx); err != nil {
		fmt.Println("do not launch:", err)
		return
	}
	fmt.Println("launch")
	// Output: launch
}

// End the lease of a holder that is stuck. Otherwise its client would renew it for ever.
func ExampleWithHealth() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close()

	stuck := func(context.Context) error { return errors.New("no progress for a minute") }
	lease, _ := locks.Mutex("import", pawl.WithTTL(900*time.Millisecond), pawl.WithHealth(stuck)).Lock(ctx)
	<-lease.Done()
	var lost *pawl.LostError
	fmt.Println(errors.As(lease.Err(), &lost), lost.Reason, lost.Err)
	// Output: true unhealthy no progress for a minute
}

// Log what happens to the locks of a client.
func ExampleLogObserver() {
	ctx := context.Background()
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: dropVarying}))
	locks, _ := pawl.Open(ctx, "mem:", &pawl.Options{Observer: pawl.LogObserver(log)})
	defer locks.Close()

	_ = locks.Mutex("nightly").Do(ctx, func(context.Context) error { return nil })
	// Output:
	// level=DEBUG msg="lock acquired" name=nightly
	// level=DEBUG msg="lock released" name=nightly
}

// Share a backend between environments, and an environment between tenants.
func ExampleClient_Namespace() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", &pawl.Options{Namespace: "prod"}) // the environment
	defer locks.Close()
	acme, globex := locks.Namespace("acme"), locks.Namespace("globex")

	lease, _ := acme.Mutex("nightly").Lock(ctx)
	_, err := acme.Mutex("nightly").TryLock(ctx)
	fmt.Println(errors.Is(err, pawl.ErrHeld))
	fmt.Println(globex.Mutex("nightly").Do(ctx, func(context.Context) error { return nil }))
	for entry, err := range acme.List(ctx, "") {
		fmt.Println(entry.Name, err)
	}
	fmt.Println(lease.Name(), "is stored as", lease.StoredName())
	// Output:
	// true
	// <nil>
	// nightly <nil>
	// nightly is stored as @prod/acme:nightly
}

// dropVarying leaves out the attributes that differ in each run of the example.
func dropVarying(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case slog.TimeKey, "fence", "left", "waited", "held":
		return slog.Attr{}
	}
	return a
}
