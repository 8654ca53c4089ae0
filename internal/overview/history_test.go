package overview_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/overview"
)

func TestHistoryRecordsHowLeasesEnded(t *testing.T) {
	withFixture(t, &overview.Options{BackgroundInterval: time.Second}, func(t *testing.T, w *fixture) {
		first, second, third := claim("job", 1), claim("job", 2), claim("job", 3)
		w.take(t, first)
		time.Sleep(2 * time.Second)
		if all := w.History().Of("job"); len(all) != 1 || all[0].End != overview.Held || !all[0].Ended.IsZero() {
			t.Errorf("the history of a held name is %+v", all)
		}
		w.queue(t, second)
		time.Sleep(3 * time.Second)
		w.release(t, first)
		time.Sleep(70 * time.Second) // the lease is not renewed, and expires
		g := w.take(t, third)
		time.Sleep(2 * time.Second)
		noError(t, w.others.Break(t.Context(), "job", g.Fence, time.Minute, driver.Owner{Host: "me"}))
		w.History().Break("job", g.Fence, "operator")
		time.Sleep(2 * time.Second)

		all := w.History().Of("job")
		if len(all) != 3 {
			t.Fatalf("it has %+v", all)
		}
		for i, want := range []overview.PastLease{
			{End: overview.Broken, By: "operator", Owner: third.Owner},
			{End: overview.Expired, Waited: 3 * time.Second, Owner: second.Owner},
			{End: overview.Released, Held: 5 * time.Second, Owner: first.Owner},
		} {
			got := all[i]
			held := want.Held == 0 || got.Held >= want.Held && got.Held <= want.Held+time.Second
			if got.End != want.End || got.By != want.By || got.Owner.PID != want.Owner.PID || got.Waited != want.Waited || !held || got.Ended.IsZero() {
				t.Errorf("the lease %d before the last is %+v, want %+v", i, got, want)
			}
		}
	})
}

// An expiry closes a name that has a lock-delay. A break without a delay closes none. The
// closed name shows a break by another process.
func TestAClosedNameDoesNotProveABreak(t *testing.T) {
	withFixture(t, &overview.Options{BackgroundInterval: time.Second}, func(t *testing.T, w *fixture) {
		dead := claim("dead", 1)
		dead.LockDelay = time.Minute
		w.take(t, dead)
		g, other := w.take(t, claim("broken", 2)), w.take(t, claim("broken by others", 3))
		time.Sleep(5 * time.Second)
		noError(t, w.others.Break(t.Context(), "broken by others", other.Fence, time.Minute, driver.Owner{}))
		noError(t, w.others.Break(t.Context(), "broken", g.Fence, 0, driver.Owner{}))
		w.History().Break("broken", g.Fence, "operator")
		time.Sleep(30 * time.Second)
		for name, want := range map[string]overview.End{"dead": overview.Expired, "broken": overview.Broken, "broken by others": overview.Broken} {
			if all := w.History().Of(name); len(all) != 1 || all[0].End != want {
				t.Errorf("of %q it has %+v, want it %s", name, all, want)
			}
		}
	})
}

func TestHistoryUsesTheBackendsClock(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newFixtureWithClock(t, func() time.Time { return time.Now().Add(time.Hour) })
		go followViews(t.Context(), w)
		time.Sleep(time.Second)
		c := claim("job", 1)
		w.take(t, c)
		time.Sleep(20 * time.Second)
		w.release(t, c)
		time.Sleep(time.Second)
		if all := w.History().Of("job"); len(all) != 1 || all[0].Held < 19*time.Second || all[0].Held > 22*time.Second {
			t.Errorf("it has %+v, want it held for 20s", all)
		}
	})
}

func TestHistoryIsBounded(t *testing.T) {
	withFixture(t, &overview.Options{BackgroundInterval: time.Second}, func(t *testing.T, w *fixture) {
		for i := range overview.MaxHistoryNames + 500 {
			w.take(t, claim(fmt.Sprintf("n%d", i), 1))
		}
		for range overview.MaxHistoryLeases + 10 {
			c := claim("busy", 2)
			w.take(t, c)
			time.Sleep(4 * time.Second)
			w.release(t, c)
			time.Sleep(4 * time.Second)
		}
		known := 1 // busy
		for i := range overview.MaxHistoryNames + 500 {
			if w.History().Of(fmt.Sprintf("n%d", i)) != nil {
				known++
			}
		}
		if known != overview.MaxHistoryNames {
			t.Errorf("it has %d names, want %d", known, overview.MaxHistoryNames)
		}
		if all := w.History().Of("busy"); len(all) != overview.MaxHistoryLeases || all[0].Fence <= all[1].Fence {
			t.Errorf("it has %d leases, want the last %d, the latest first", len(all), overview.MaxHistoryLeases)
		}
	})
}
