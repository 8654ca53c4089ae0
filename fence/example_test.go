package fence_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/fence"
	_ "github.com/pawl-go/pawl/memlock"
)

// A holder that was paused past the end of its lease writes as if nothing had happened.
func Example() {
	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", nil)
	defer locks.Close(ctx)
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
