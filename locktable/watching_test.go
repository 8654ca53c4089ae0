package locktable_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/locktable"
)

// pushingTable is a byteTable that is Pushing. A test calls setState to say whether
// signals arrive.
type pushingTable struct {
	*byteTable
	setState func(bool)
	ended    int
}

func (e *pushingTable) Properties() driver.Properties {
	return driver.Properties{Backend: "pushing", PushesChanges: true}
}

func (e *pushingTable) Subscribe(f func(up bool)) (stop func()) {
	e.setState = f
	f(true)
	return func() { e.setState, e.ended = nil, e.ended+1 }
}

func (e *pushingTable) Close() error { return nil }

// UpdateAll runs one step after the other, because no other client runs steps meanwhile.
func (e *pushingTable) UpdateAll(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool) error {
	for i, s := range steps {
		continues := true
		err := e.Update(ctx, []locktable.Step{s}, func(_ int, e *locktable.Entry, now locktable.Instant) { continues = f(i, e, now) })
		if err != nil || !continues {
			return err
		}
	}
	return nil
}

// newWatched returns a table, a client that can watch, and a client that cannot.
func newWatched() (e *pushingTable, watcher *locktable.GroupedDriver, other *locktable.Driver) {
	e = &pushingTable{byteTable: newByteTable()}
	watcher = locktable.NewGrouped(e, "x")
	e.drivers["x"] = watcher.Driver
	return e, watcher, e.byteTable.client("y")
}

func watch(d driver.Watcher, name string) (calls func() int, stop func()) {
	n := 0
	stop = d.Watch(name, func() { n++ })
	return func() int {
		synctest.Wait()
		count := n
		n = 0
		return count
	}, stop
}

func TestVisibleChangesCallTheWatch(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		_, watcher, other := newWatched()
		defer watcher.Close()
		calls, stop := watch(watcher, "job")
		if calls() == 0 {
			t.Error("the watch was not called when it began")
		}
		if _, err := other.Acquire(t.Context(), *mutex("a")); err != nil || calls() != 1 {
			t.Errorf("a grant (error %v) did not call the watch once", err)
		}
		if _, err := other.Renew(t.Context(), []driver.LeaseRef{lease("a")}); err != nil || calls() != 0 {
			t.Errorf("a renewal (error %v) called the watch", err)
		}
		if _, err := other.Acquire(t.Context(), *with(mutex("a"), func(c *driver.Claim) { c.Name = "other" })); err != nil || calls() != 0 {
			t.Errorf("a change of another name (error %v) called the watch", err)
		}
		stop()
		synctest.Wait()
		if err := other.Release(t.Context(), lease("a")); err != nil || calls() != 0 {
			t.Errorf("a release (error %v) called a stopped watch", err)
		}
	})
}

// An expiry that AcquireAll finds is reported once, whether its claims are granted or
// refused.
func TestAcquireAllCallsAWatchOnce(t *testing.T) {
	for what, claims := range map[string][]driver.Claim{
		"granted": {*try(mutex("b"))},
		"refused": {*try(mutex("b")), *with(try(mutex("c")), func(c *driver.Claim) { c.Name = "held" })},
	} {
		t.Run(what, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				e, watcher, other := newWatched()
				defer watcher.Close()
				calls, _ := watch(watcher, "job")
				held := with(mutex("d"), func(c *driver.Claim) { c.Name, c.TTL = "held", time.Hour })
				for _, c := range []*driver.Claim{mutex("a"), held} {
					must(other.Acquire(t.Context(), *c))(t)
				}
				calls()
				e.mu.Lock()
				e.now = e.now.Add(ttl)
				e.mu.Unlock()
				_, err := watcher.AcquireAll(t.Context(), claims)
				if n := calls(); (err == nil) != (what == "granted") || n != 1 {
					t.Errorf("error %v, %d calls of the watch; want none, and one call", err, n)
				}
			})
		})
	}
}

// Marks are renewed as long as a client watches, and no longer.
func TestMarksAreRenewed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e, watcher, other := newWatched()
		defer watcher.Close()
		calls, stop := watch(watcher, "job")
		otherCalls, stopOther := watch(watcher, "more")
		began := time.Now()
		advanceClock := func() { // the table's clock follows ours
			e.mu.Lock()
			defer e.mu.Unlock()
			e.now = start.Add(time.Since(began))
		}
		for range 30 {
			time.Sleep(10 * time.Second)
			advanceClock()
		}
		calls()
		if n := otherCalls(); n > 2 {
			t.Errorf("%d calls without a change", n)
		}
		if _, err := other.Acquire(t.Context(), *mutex("a")); err != nil || calls() != 1 {
			t.Errorf("error %v; want none, and one call after five minutes", err)
		}
		stop()
		stopOther()
		synctest.Wait()
		updates := e.updates
		if e.ended != 1 {
			t.Errorf("%d subscriptions ended, want 1", e.ended)
		}
		time.Sleep(10 * time.Minute)
		if e.updates != updates {
			t.Errorf("%d updates without a watch", e.updates-updates)
		}
	})
}

// A watch that gets no signals, or cannot mark its name, is called, and must then poll.
func TestAWatchWithoutSignalsIsReported(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e, watcher, _ := newWatched()
		defer watcher.Close()
		calls, _ := watch(watcher, "job")
		wantPushesChanges := func(what string, want bool) {
			t.Helper()
			if n := calls(); n == 0 || watcher.Properties().PushesChanges != want {
				t.Errorf("%s: %d calls, PushesChanges is %v; want a call, and %v", what, n, !want, want)
			}
		}
		wantPushesChanges("at the beginning", true)
		e.setState(false)
		wantPushesChanges("without signals", false)
		e.setState(true)
		wantPushesChanges("with signals again", true)
		e.mu.Lock()
		e.err = errors.New("disk full")
		e.mu.Unlock()
		time.Sleep(30 * time.Second)
		wantPushesChanges("without marks", false)
		e.mu.Lock()
		e.err = nil
		e.mu.Unlock()
		time.Sleep(3 * time.Minute)
		wantPushesChanges("with marks again", true)
	})
}

// An operator deletes the name, and the mark with it.
func TestADeletedMarkIsMadeAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e, watcher, other := newWatched()
		defer watcher.Close()
		calls, _ := watch(watcher, "job")
		calls()
		e.mu.Lock()
		delete(e.rows, "job")
		e.mu.Unlock()
		time.Sleep(30 * time.Second)
		if calls() == 0 {
			t.Error("the watch was not called")
		}
		if _, err := other.Acquire(t.Context(), *mutex("a")); err != nil || calls() != 1 {
			t.Errorf("error %v; want none, and one call of the watch", err)
		}
	})
}

// A damaged name does not affect other names.
func TestANameThatCannotBeMarkedDoesNotAffectOthers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e, watcher, other := newWatched()
		defer watcher.Close()
		e.rows["bad"] = []byte("?")
		watch(watcher, "bad")
		calls, _ := watch(watcher, "job")
		calls()
		if _, err := other.Acquire(t.Context(), *mutex("a")); err != nil || calls() != 1 {
			t.Errorf("error %v; want none, and one call of the watch", err)
		}
		if watcher.Properties().PushesChanges {
			t.Error("PushesChanges is true, although changes of one name are not reported")
		}
	})
}

// A signal for all claims is for watches, too.
func TestARetrySignalForAllCallsTheWatches(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		_, watcher, _ := newWatched()
		defer watcher.Close()
		calls, _ := watch(watcher, "job")
		calls()
		watcher.Deliver(driver.Signal{Kind: driver.SignalRetry, Token: driver.NewToken()})
		if calls() != 0 {
			t.Error("a signal for one claim called the watch")
		}
		watcher.Deliver(driver.Signal{Kind: driver.SignalRetry})
		if calls() != 1 {
			t.Error("a signal for all did not call the watch")
		}
	})
}
