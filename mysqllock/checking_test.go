package mysqllock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// The first call checks the server, and the others wait for that: each only as long as
// its own ctx, not the first one's.
func TestNobodyWaitsForTheFirstLookLongerThanItsCtx(t *testing.T) {
	s, db, _ := fresh(t)
	road := servertest.StartProxy(t, s.Addr)
	slow, err := mysqltest.OpenDSN(mysqltest.DSN(road.Addr, name(t, db)))
	noError(t, err)
	t.Cleanup(func() { _ = slow.Close() })
	d := driverOver(t, slow, nil)
	looks := road.Silence("SHOW SESSION VARIABLES")
	long, giveUp := context.WithCancel(ctx)
	first := make(chan error, 1)
	go func() {
		_, err := d.Acquire(long, mutex("job"))
		first <- err
	}()
	<-looks
	second := make(chan error, 1)
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	go func() {
		_, err := d.Acquire(short, mutex("other"))
		second <- err
	}()
	select {
	case err := <-second:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v; want the end of its ctx", err)
		}
	case <-time.After(time.Minute):
		t.Error("it waits for the first one")
	}
	giveUp()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first: %v", err)
	}
}
