package redlock_test

import (
	"context"
	"log"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/redislock/redlock"
)

// Three servers that share nothing, of which any one may be lost.
func ExampleOpen() {
	ctx := context.Background()
	d, err := redlock.Open(ctx, "redlock://redis-a,redis-b,redis-c")
	if err != nil {
		log.Fatal(err)
	}
	locks, err := pawl.New(d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}
