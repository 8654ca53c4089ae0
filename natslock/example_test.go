package natslock_test

import (
	"context"
	"log"

	"github.com/nats-io/nats.go"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/natslock"
)

// By URL.
func ExampleOpen() {
	ctx := context.Background()
	d, err := natslock.Open(ctx, "nats://app:secret@n1.internal,n2.internal,n3.internal/locks")
	if err != nil {
		log.Fatal(err) // has a hint, and never the password
	}
	locks, err := pawl.New(d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}

// With a connection of your own.
func ExampleNew() {
	nc, err := nats.Connect("nats://localhost:4222")
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	d, err := natslock.New(nc, &natslock.Options{Bucket: "billing"})
	if err != nil {
		log.Fatal(err)
	}
	locks, err := pawl.New(d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}
