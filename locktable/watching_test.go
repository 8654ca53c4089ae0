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

// pushing is a shelf whose signals arrive while f is set. A test can say whether they do.
type pushing struct {
	*shelf
	setState func(bool)
	ended    int
}

func (e *pushing) Properties() driver.Properties {
	return driver.Properties{Backend: "pushing", PushesChanges: true}
}

func (e *pushing) Subscribe(f func(up bool)) (stop func()) {
	e.setState = f
	f(true)
	return func() { e.setState, e.ended = nil, e.ended+1 }
}

func (e *pushing) Close() error { return nil }

// UpdateAll takes one step after the other, because no other client can come in between.
func (e *pushing) UpdateAll(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool) error {
	for i, s := range steps {
		goesOn := true
		err := e.Update(ctx, []locktable.Step{s}, func(_ int, e *locktable.Entry, now locktable.Instant) { goesOn = f(i, e, now) })
		if err != nil || !goesOn {
			return err
		}
	}
	return nil
}

// aside is a client of a shelf that watches nothing, and another one that may.
func aside() (e *pushing, watcher *locktable.GroupedDriver, other *locktable.Driver) {
	e = &pushing{shelf: newShelf()}
	watcher = locktable.NewGrouped(e, "x")
	e.drivers["x"] = watcher.Driver
	return e, watcher, e.shelf.client("y")
}

func watch(d driver.Watcher, name string) (told func() int, stop func()) {
	n := 0
	stop = d.Watch(name, func() { n++ })
	return func() int {
		synctest.Wait()
		was := n
		n = 0
		return was
	}, stop
}

func TestChangesAreToldThroughMarks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		_, x, y := aside()
		defer x.Close()
		told, stop := watch(x, "job")
		if told() == 0 {
			t.Error("it began to be told, and was not told of that")
		}
		if _, err := y.Acquire(t.Context(), *mutex("a")); err != nil || told() != 1 {
			t.Errorf("a grant, %v, was not told once", err)
		}
		if _, err := y.Renew(t.Context(), []driver.LeaseRef{lease("a")}); err != nil || told() != 0 {
			t.Errorf("a renewal, %v, was told", err)
		}
		if _, err := y.Acquire(t.Context(), *with(mutex("a"), func(c *driver.Claim) { c.Name = "other" })); err != nil || told() != 0 {
			t.Errorf("another name, %v, was told", err)
		}
		stop()
		synctest.Wait()
		if err := y.Release(t.Context(), lease("a")); err != nil || told() != 0 {
			t.Errorf("a release, %v, was told to nobody", err)
		}
	})
}

// An expiry that several claims find is reported whether they are refused or granted;
// with a grant in the same step it is reported once.
func TestClaimsOfSeveralNamesAreToldOnce(t *testing.T) {
	for what, claims := range map[string][]driver.Claim{
		"granted": {*try(mutex("b"))},
		"refused": {*try(mutex("b")), *with(try(mutex("c")), func(c *driver.Claim) { c.Name = "held" })},
	} {
		t.Run(what, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				e, x, y := aside()
				defer x.Close()
				told, _ := watch(x, "job")
				held := with(mutex("d"), func(c *driver.Claim) { c.Name, c.TTL = "held", time.Hour })
				for _, c := range []*driver.Claim{mutex("a"), held} {
					must(y.Acquire(t.Context(), *c))(t)
				}
				told()
				e.mu.Lock()
				e.now = e.now.Add(ttl)
				e.mu.Unlock()
				_, err := x.AcquireAll(t.Context(), claims)
				if n := told(); (err == nil) != (what == "granted") || n != 1 {
					t.Errorf("%v, and it was told %d times, want once", err, n)
				}
			})
		})
	}
}

// Marks last as long as a client watches, and no longer.
func TestMarksAreRenewed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e, x, y := aside()
		defer x.Close()
		told, stop := watch(x, "job")
		more, end := watch(x, "more")
		began := time.Now()
		clock := func() { // the table's clock goes with ours
			e.mu.Lock()
			defer e.mu.Unlock()
			e.now = start.Add(time.Since(began))
		}
		for range 30 {
			time.Sleep(10 * time.Second)
			clock()
		}
		told()
		if n := more(); n > 2 {
			t.Errorf("told %d times of nothing", n)
		}
		if _, err := y.Acquire(t.Context(), *mutex("a")); err != nil || told() != 1 {
			t.Errorf("%v, and it was not told once after five minutes", err)
		}
		stop()
		end()
		synctest.Wait()
		updates := e.updates
		if e.ended != 1 {
			t.Errorf("it went on to hear for nobody: %d", e.ended)
		}
		time.Sleep(10 * time.Minute)
		if e.updates != updates {
			t.Errorf("%d updates for nobody", e.updates-updates)
		}
	})
}

// A watch that gets no signals, or cannot mark its name, is notified, and has to poll
// from then on.
func TestAWatchThatIsDeafSaysSo(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e, x, _ := aside()
		defer x.Close()
		told, _ := watch(x, "job")
		pushes := func(what string, want bool) {
			t.Helper()
			if n := told(); n == 0 || x.Properties().PushesChanges != want {
				t.Errorf("%s: told %d times, PushesChanges is %v; want it told, and %v", what, n, !want, want)
			}
		}
		pushes("it began", true)
		e.setState(false)
		pushes("it is down", false)
		e.setState(true)
		pushes("it is up again", true)
		e.mu.Lock()
		e.err = errors.New("disk full")
		e.mu.Unlock()
		time.Sleep(30 * time.Second)
		pushes("it cannot mark", false)
		e.mu.Lock()
		e.err = nil
		e.mu.Unlock()
		time.Sleep(3 * time.Minute)
		pushes("it can mark again", true)
	})
}

// An operator deletes the name, and the mark with it.
func TestAMarkThatIsGoneIsMadeAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e, x, y := aside()
		defer x.Close()
		told, _ := watch(x, "job")
		told()
		e.mu.Lock()
		delete(e.rows, "job")
		e.mu.Unlock()
		time.Sleep(30 * time.Second)
		if told() == 0 {
			t.Error("nobody was told to look")
		}
		if _, err := y.Acquire(t.Context(), *mutex("a")); err != nil || told() != 1 {
			t.Errorf("%v, and it was not told once", err)
		}
	})
}

// A damaged name costs the others nothing.
func TestANameThatCannotBeMarkedIsAlone(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e, x, y := aside()
		defer x.Close()
		e.rows["bad"] = []byte("?")
		watch(x, "bad")
		told, _ := watch(x, "job")
		told()
		if _, err := y.Acquire(t.Context(), *mutex("a")); err != nil || told() != 1 {
			t.Errorf("%v, and it was not told once", err)
		}
		if x.Properties().PushesChanges {
			t.Error("PushesChanges is true, and a name is not told of")
		}
	})
}

// A signal for all claims is for watches, too.
func TestALookForEverybodyIsToldToWhoWatches(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		_, x, _ := aside()
		defer x.Close()
		told, _ := watch(x, "job")
		told()
		x.Deliver(driver.Signal{Kind: driver.SignalRetry, Token: driver.NewToken()})
		if told() != 0 {
			t.Error("told of what is for one claim")
		}
		x.Deliver(driver.Signal{Kind: driver.SignalRetry})
		if told() != 1 {
			t.Error("not told")
		}
	})
}
