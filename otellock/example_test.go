package otellock_test

import (
	"context"
	"log"

	"github.com/pawl-go/pawl"
	_ "github.com/pawl-go/pawl/memlock"
	"github.com/pawl-go/pawl/otellock"
)

func ExampleNew() {
	ctx := context.Background()
	observer, err := otellock.New(nil) // of the global providers
	if err != nil {
		log.Fatal(err)
	}
	locks, err := pawl.Open(ctx, "mem:", &pawl.Options{Observer: observer})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}
