package mongolock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// A program's own requests may take all connections of its pool. A step then waits for a
// connection. It takes effect within its window, or never.
func TestAPoolThatIsUsedUp(t *testing.T) {
	t.Parallel()
	m := startMember(t, startFerretDB(t).addr)
	client, err := mongo.Connect(options.Client().ApplyURI(m.url("")).SetMaxPoolSize(1))
	noError(t, err)
	t.Cleanup(func() { disconnect(client) })
	db := client.Database(newDatabase())
	d, err := asDriver(New(db, &Options{NoPush: true}))
	noError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	gets(t, d, mutex("warm"))

	// The only connection is in use.
	busy, free := make(chan struct{}), make(chan struct{})
	m.addPlans(&plan{command: "find", matches: func(c bson.D) bool { return c[0].Value == "own" }, before: func() { close(busy); <-free }})
	var own sync.WaitGroup
	own.Go(func() { _ = db.Collection("own").FindOne(ctx, bson.D{}).Err() })
	<-busy
	if _, err := d.Acquire(within(t, 300*time.Millisecond), mutex("job")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v; want context.DeadlineExceeded", err)
	}
	waited := mutex("waited")
	var steps sync.WaitGroup
	steps.Go(func() {
		if _, err := d.Acquire(within(t, 20*time.Second), waited); err != nil {
			t.Error(err)
		}
	})
	time.Sleep(200 * time.Millisecond) // longer than a window
	close(free)
	own.Wait()
	steps.Wait()
	checkOneHolder(t, m, db.Name(), "waited", gets(t, d, waited).Fence)

	// Many goroutines use the one connection.
	for i := range 20 {
		steps.Go(func() {
			c := mutex(fmt.Sprint("job ", i))
			_, err := d.Acquire(within(t, 20*time.Second), c)
			if err == nil {
				err = d.Release(within(t, 20*time.Second), lease(c))
			}
			if err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
		})
	}
	steps.Wait()
}

// A renewal that finds no connection ends with its deadline, and the error has a hint.
func TestAPoolThatIsUsedUpHasAHint(t *testing.T) {
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://127.0.0.1:1"))
	noError(t, err)
	t.Cleanup(func() { disconnect(client) })
	s := &store{life: ctx, db: client.Database("app")}
	expired, cancel := context.WithDeadline(ctx, time.Now())
	defer cancel()
	err = s.driverError(expired, topology.WaitQueueTimeoutError{Wrapped: context.DeadlineExceeded})
	if wantDriverError(t, err, false, "maxPoolSize"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v; want context.DeadlineExceeded", err)
	}
}
