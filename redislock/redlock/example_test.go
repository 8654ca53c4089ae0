package redlock_test

import (
	"context"
	"log"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/redislock/redlock"
)

// Three servers that share nothing. Any one of them may fail.
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

// With clients of your own.
func ExampleNew() {
	var clients []rueidis.Client
	for _, host := range []string{"redis-a:6379", "redis-b:6379", "redis-c:6379"} {
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{host}})
		if err != nil {
			log.Fatal(err)
		}
		defer client.Close()
		clients = append(clients, client)
	}
	d, err := redlock.New(clients...)
	if err != nil {
		log.Fatal(err)
	}
	locks, err := pawl.New(d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}
