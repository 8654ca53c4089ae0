package mongolock_test

import (
	"context"
	"fmt"
	"log"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/mongolock"
)

// By URL.
func ExampleOpen() {
	ctx := context.Background()
	d, err := mongolock.Open(ctx, "mongodb://user:password@localhost:27017/app?authSource=admin")
	if err != nil {
		log.Fatal(err) // has a hint, and never the password
	}
	locks, err := pawl.New(d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}

// With the program's own client.
func ExampleNew() {
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://localhost:27017"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Disconnect(context.Background())
	d, err := mongolock.New(client.Database("app"), &mongolock.Options{Collection: "locks"})
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	fmt.Println(d.Properties().Location)
	// Output: mongodb of the caller/app collection=locks
}
