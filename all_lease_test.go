package pawl

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/memlock"
)

// A minimum hold is for a function that has begun.
func TestAGroupThatIsLostBeforeItsFunctionIsFreeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		c, err := New(memlock.NewMemory(nil).Driver(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		short := WithMinHold(time.Minute)
		locks := All(c.Mutex("x", short), c.Mutex("y", short), c.Mutex("z", short))
		leases, err := locks.Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Break(ctx, "y", leases.Fence("y"), 0); err != nil {
			t.Fatal(err)
		}
		<-leases.Done()
		ran, err := leases.do(ctx, nil, func(context.Context) error { t.Error("it ran"); return nil })
		if ran || !errors.Is(err, ErrLost) {
			t.Errorf("it ran: %v, %v", ran, err)
		}
		again, err := locks.TryLock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.ReleaseNow(ctx); err != nil {
			t.Error(err)
		}
	})
}
