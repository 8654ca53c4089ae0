package quorumlock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/memlock"
	"github.com/pawl-go/pawl/quorumlock"
)

// One driver of three. In earnest each is of a server of its own: redislock, or any other
// whose driver is a driver.FenceRaiser, and not all of one kind, if you like.
func ExampleNew() {
	ctx := context.Background()
	nodes := []driver.Driver{memlock.New(nil), memlock.New(nil), memlock.New(nil)}
	quorum, err := quorumlock.New(nodes, nil)
	if err != nil {
		log.Fatal(err)
	}
	locks, err := pawl.New(quorum, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close() // and the quorum, and the nodes

	_ = nodes[0].Close() // one of three may be lost
	fmt.Println(locks.Properties().Backend)
	fmt.Println(locks.Mutex("job").Do(ctx, func(context.Context) error { return nil }))
	// Output:
	// quorum(3×memory)
	// <nil>
}
