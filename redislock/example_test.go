package redislock_test

import (
	"context"
	"log"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/redislock"
)

// A driver with connections of its own.
func ExampleOpen() {
	ctx := context.Background()
	d, err := redislock.Open(ctx, "redis://localhost:6379")
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	locks, err := pawl.New(d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}

// A driver over a client of your own.
func ExampleNew() {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"localhost:6379"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	d, err := redislock.New(client, &redislock.Options{Prefix: "app:locks:"})
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	locks, err := pawl.New(d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}

// With tracking, the server notifies a holder at once when another client deletes its
// key.
func ExampleTrack() {
	o := rueidis.ClientOption{InitAddress: []string{"localhost:6379"}}
	tracking := redislock.Track(&o)
	client, err := rueidis.NewClient(o)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	d, err := redislock.New(client, &redislock.Options{Tracking: tracking})
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
}
