package fence_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/fence"
	_ "github.com/pawl-go/pawl/memlock"
)

// A holder that was paused past the end of its lease writes as if it still held the lock.
func Example() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close()
	paused, _ := locks.Mutex("account").Lock(ctx)
	current, _ := locks.Mutex("account").ForceLock(ctx) // as if the first had been paused

	var account fence.Memory
	write := func(lease *pawl.Lease) error {
		return account.Guard(ctx, "account", lease.Fence(), func(context.Context) error {
			fmt.Println("written")
			return nil
		})
	}
	fmt.Println(write(current))
	err := write(paused)
	fmt.Println("stale:", errors.Is(err, pawl.ErrStale))
	// Output:
	// written
	// <nil>
	// stale: true
}

func ExampleRedisScript() {
	script := fence.RedisScript(`return redis.call('INCRBY', KEYS[1], ARGV[1])`)
	// With go-redis:
	//
	//	_, err := redis.NewScript(script).Run(ctx, client,
	//		[]string{"fence:{account}", "balance:{account}"}, lease.Fence(), 10).Result()
	//	err = fence.RedisError(err, "account", lease.Fence())
	fmt.Println(len(script) > 0)
	// Output: true
}

// The service refuses requests of holders that have lost the lock. The client sends the
// fence of its lease.
func ExampleHandler() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close()

	account := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fmt.Println("written") })
	service := httptest.NewServer(fence.Handler(new(fence.Memory), nil, account))
	defer service.Close()

	client := &http.Client{Transport: &fence.Transport{
		Resource: func(*http.Request) string { return "account" }, // the name of the lock
	}}
	write := func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, service.URL, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		return fence.ResponseError(answer)
	}
	fmt.Println(locks.Mutex("account").Do(ctx, write))
	fmt.Println(write(ctx)) // without a lock
	// Output:
	// written
	// <nil>
	// pawl: request was refused: needs the headers Fencing-Token and Fencing-Resource; allowed: one Fencing-Token and one Fencing-Resource, of the lease on the resource
}

// Both permits are held, so Guard accepts both fences.
func ExampleHolders() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close()

	first, _ := locks.Semaphore("exports", 2).Acquire(ctx, 1)
	second, _ := locks.Semaphore("exports", 2).Acquire(ctx, 1)
	guard := fence.Holders{Locks: locks}
	write := func(lease *pawl.Lease) error {
		return guard.Guard(ctx, "exports", lease.Fence(), func(context.Context) error { return nil })
	}
	fmt.Println(write(second), write(first))
	_ = first.Release(ctx)
	fmt.Println(write(second), errors.Is(write(first), pawl.ErrStale))
	// Output:
	// <nil> <nil>
	// <nil> true
}

// A store is a few lines around the client that a program already uses. docs/fencing.md
// shows them.
func ExampleUpdateObject() {
	write := func(ctx context.Context, store fence.ObjectStore, lease *pawl.Lease) error {
		return fence.UpdateObject(ctx, store, "accounts/7.json", lease.Fence(), func(old []byte) ([]byte, error) {
			account := struct {
				Fence   uint64 // has to be in the body
				Balance int
			}{}
			if old != nil {
				if err := json.Unmarshal(old, &account); err != nil {
					return nil, err
				}
			}
			account.Fence, account.Balance = lease.Fence(), account.Balance+10
			return json.Marshal(account)
		})
	}
	_ = write
}
