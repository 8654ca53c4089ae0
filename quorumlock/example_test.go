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

// A quorum of three drivers. In production, each driver has a server of its own. Any
// driver that is a driver.FenceRaiser will do, for example redislock's. They may be
// mixed.
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
