package redis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/servertest"
)

func lock(t *testing.T, m *pawl.Mutex) *pawl.Lease {
	t.Helper()
	lease, err := m.Lock(t.Context())
	noError(t, err)
	return lease
}

func wantHeld(t *testing.T, m *pawl.Mutex) {
	t.Helper()
	if _, err := m.TryLock(t.Context()); !errors.Is(err, pawl.ErrHeld) {
		t.Fatalf("TryLock: %v; want ErrHeld", err)
	}
}

func release(t *testing.T, l *pawl.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func wantHigherFence(t *testing.T, first, second *pawl.Lease) {
	t.Helper()
	if second.Fence() <= first.Fence() {
		t.Errorf("fence %d after %d, want a greater one", second.Fence(), first.Fence())
	}
}

// The server keeps a key for a day after the end of its function, however long that runs.
func TestAKeyIsKeptAfterAFunctionThatRanForADay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		tick, one, two := pawl.TimeKey(time.Now()), w.client(nil), w.client(nil)
		for _, c := range []*pawl.Client{one, two} {
			ran, err := c.Once("report", pawl.WithTTL(2*time.Hour)).Do(t.Context(), tick, func(context.Context) error {
				time.Sleep(26 * time.Hour)
				return nil
			})
			if ran != (c == one) || err != nil {
				t.Errorf("ran: %v, %v; want %v", ran, err, c == one)
			}
			time.Sleep(23 * time.Hour)
		}
	})
}

func TestAServerThatIsBackWithinTheTermCostsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		one, two := w.client(nil), w.client(nil)
		first := lock(t, one.Mutex("job"))
		granted := make(chan *pawl.Lease)
		go func() { granted <- lock(t, two.Mutex("job")) }()
		for range 7 { // at different times between two renewals
			time.Sleep(17 * time.Second)
			w.crash()
			time.Sleep(5 * time.Second)
			w.restart()
			noError(t, first.Err())
		}
		time.Sleep(time.Minute)
		release(t, first)
		second := <-granted
		wantHigherFence(t, first, second)
		release(t, second)
	})
}

func TestTheHolderLearnsOfALongOutageInTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		one, two := w.client(nil), w.client(nil)
		first := lock(t, one.Mutex("job"))
		time.Sleep(time.Minute)
		w.crash()
		<-first.Done()
		if lost, ok := errors.AsType[*pawl.LostError](first.Err()); !ok || lost.Reason != pawl.ReasonUnreachable {
			t.Errorf("%v; want the reason ReasonUnreachable", first.Err())
		}
		w.restart()
		wantHeld(t, two.Mutex("job")) // the holder learned of its loss before the lease expired
		second := lock(t, two.Mutex("job"))
		wantHigherFence(t, first, second)
		release(t, second)
	})
}

// A clock that is set forward ends leases early. One that is set back makes them last
// longer, and the next fence does not come from the clock.
func TestTheServersClockIsSet(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) { servertest.ClockEndsLeases(t, w.driver(), w.driver(), w.setAhead) })
}
