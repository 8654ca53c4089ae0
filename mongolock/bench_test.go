package mongolock

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pawl-go/pawl/drivertest"
)

// On FerretDB these say little: its proxy reads each document before an update.

// BenchmarkCycle measures an acquire and a release of a name that no other client uses.
func BenchmarkCycle(b *testing.B) {
	server := serve(b)
	d := open(b, server.at(server.addr, database()))
	for b.Loop() {
		c := mutex("cycle")
		if _, err := d.Acquire(ctx, c); err != nil {
			b.Fatal(err)
		}
		noError(b, d.Release(ctx, lease(c)))
	}
}

// BenchmarkFloor measures two updates of one document.
func BenchmarkFloor(b *testing.B) {
	server := serve(b)
	d := open(b, server.at(server.addr, database()))
	at, err := d.store.server(ctx)
	noError(b, err)
	if _, err := at.entries.InsertOne(ctx, bson.D{{Key: "_id", Value: "floor"}}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for range 2 {
			if _, err := at.entries.UpdateOne(ctx, bson.D{{Key: "_id", Value: "floor"}},
				bson.D{{Key: "$set", Value: bson.D{{Key: "version", Value: time.Now().UnixNano()}, {Key: "value", Value: make([]byte, 150)}}}}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkBesideHolders measures the cost of a step beside many holders of its name.
func BenchmarkBesideHolders(b *testing.B) {
	server := serve(b)
	drivertest.BenchmarkHolders(b, open(b, server.at(server.addr, database())), nil, 1, 100, 1000)
}

// BenchmarkAll measures pawl.All beside one lock.
func BenchmarkAll(b *testing.B) {
	server := serve(b)
	drivertest.BenchmarkAll(b, open(b, server.at(server.addr, database())))
}
