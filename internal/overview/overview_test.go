package overview_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/overview"
	"github.com/pawl-go/pawl/internal/servertest"
)

// followViews shows names until ctx ends, as a page does, and counts its views.
func followViews(ctx context.Context, w *fixture, names ...string) (views int) {
	viewer := w.Join()
	defer viewer.Leave()
	viewer.Show(names)
	for v := w.View(); ; views++ {
		next, err := viewer.Next(ctx, v)
		if err != nil {
			return views
		}
		v = next
	}
}

func TestAHundredViewersCostAsMuchAsOne(t *testing.T) {
	var requests [2]int64
	for i, viewers := range []int{1, 100} {
		withFixture(t, nil, func(t *testing.T, w *fixture) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute+100*time.Millisecond)
			defer cancel()
			var all sync.WaitGroup
			for range viewers {
				all.Go(func() {
					if n := followViews(ctx, w, "x"); n < 50 {
						t.Errorf("a viewer got %d views in a minute, want 50 or more", n)
					}
				})
			}
			all.Wait()
			requests[i] = w.requests()
		})
	}
	if requests[0] != requests[1] || requests[0] > 120 || requests[0] < 50 {
		t.Errorf("%d requests for one viewer, %d for a hundred; want the same, and 2 a second at most", requests[0], requests[1])
	}
}

func TestWithoutViewersTheBackendIsNotRead(t *testing.T) {
	withFixture(t, nil, func(t *testing.T, w *fixture) {
		time.Sleep(time.Hour)
		if n := w.requests(); n != 0 {
			t.Errorf("%d requests before there was a viewer", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		followViews(ctx, w)
		time.Sleep(time.Second) // a scan that had begun before is over now
		n := w.requests()
		time.Sleep(time.Hour)
		if n == 0 || w.requests() != n {
			t.Errorf("%d requests in a minute, then %d more; want some, then none", n, w.requests()-n)
		}
	})
}

func TestTheBackgroundIntervalScansWithoutViewers(t *testing.T) {
	withFixture(t, &overview.Options{BackgroundInterval: 5 * time.Second}, func(t *testing.T, w *fixture) {
		time.Sleep(time.Minute - time.Second)
		if n := w.requests(); n != 12 {
			t.Errorf("%d requests in a minute, want 12", n)
		}
	})
}

func TestShownNamesArePushed(t *testing.T) {
	withFixture(t, nil, func(t *testing.T, w *fixture) {
		viewer := w.addViewer(t, "job")
		time.Sleep(10*time.Second + 100*time.Millisecond) // between two scans
		v := w.View()
		began := time.Now()
		w.take(t, claim("job", 1))
		v, err := viewer.Next(t.Context(), v)
		if err != nil || v.Row("job") == nil || !v.Push || time.Since(began) > 50*time.Millisecond {
			t.Errorf("%v after %v, with %v; want it at once, by push", v.Rows, time.Since(began), err)
		}
	})
}

func TestWithoutPushTheNextScanFindsChanges(t *testing.T) {
	withFixture(t, nil, func(t *testing.T, w *fixture) {
		w.driver.pushesNothing.Store(true)
		w.addViewer(t, "job")
		time.Sleep(10 * time.Second)
		w.take(t, claim("job", 1))
		time.Sleep(700 * time.Millisecond)
		if v := w.View(); v.Row("job") == nil || v.Push {
			t.Errorf("rows %v, push %v; want the row of job, without push", v.Rows, v.Push)
		}
	})
}

// The overview does not read a busy name at every change.
func TestABusyNameIsReadAtABoundedPace(t *testing.T) {
	withFixture(t, nil, func(t *testing.T, w *fixture) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		go followViews(ctx, w, "busy")
		for ctx.Err() == nil {
			c := claim("busy", 1)
			w.take(t, c)
			time.Sleep(time.Millisecond)
			w.release(t, c)
		}
		if n := w.requests(); n > 250 || n < 100 {
			t.Errorf("%d requests in 10 s, want about 200", n)
		}
	})
}

func TestAHangingScanIsFollowedByANormalPause(t *testing.T) {
	withFixture(t, nil, func(t *testing.T, w *fixture) {
		w.take(t, claim("job", 1))
		w.addViewer(t)
		time.Sleep(time.Second)
		w.driver.hangs.Store(true)
		time.Sleep(7 * time.Second)
		v := w.View()
		if v.Err == nil || v.ErrSince.IsZero() || v.Row("job") == nil {
			t.Fatalf("%v since %v, rows %v; want the error, and the rows of the last scan", v.Err, v.ErrSince, v.Rows)
		}
		since := v.ErrSince
		time.Sleep(7 * time.Second)
		if v = w.View(); v.ErrSince != since {
			t.Errorf("ErrSince is %v; it was %v before", v.ErrSince, since)
		}
		w.driver.hangs.Store(false)
		time.Sleep(7 * time.Second) // the hanging call ends, and a pause follows
		if v = w.View(); v.Err != nil || time.Since(v.ScannedAt) > time.Second {
			t.Errorf("error %v, last scan %v ago; want none, and a scan within 1s", v.Err, time.Since(v.ScannedAt))
		}
		w.driver.hangs.Store(true)
		time.Sleep(7 * time.Second)
		if v = w.View(); v.ErrSince.Sub(since) < 10*time.Second {
			t.Errorf("the second outage begins %v after the first, want 10s or more", v.ErrSince.Sub(since))
		}
	})
}

func TestOneSlowScanIsFollowedByANormalPause(t *testing.T) {
	withFixture(t, nil, func(t *testing.T, w *fixture) {
		w.addViewer(t)
		time.Sleep(10 * time.Second)
		w.driver.slow.Store(true)
		time.Sleep(6 * time.Second)
		if ago := time.Since(w.View().ScannedAt); ago > time.Second {
			t.Errorf("last scan %v ago, want 1s at most", ago)
		}
	})
}

// A push also reports that a name is closed.
func TestANameThatIsClosedIsShown(t *testing.T) {
	withFixture(t, nil, func(t *testing.T, w *fixture) {
		g := w.take(t, claim("job", 1))
		viewer := w.addViewer(t, "job")
		time.Sleep(10*time.Second + 100*time.Millisecond) // between two scans
		v := w.View()
		noError(t, w.others.Break(t.Context(), "job", g.Fence, time.Minute, driver.Owner{}))
		v, err := viewer.Next(t.Context(), v)
		if err != nil || v.Row("job") == nil || v.Row("job").Closed(time.Now()) < 59*time.Second {
			t.Errorf("rows %v, with %v; want it closed for a minute", v.Rows, err)
		}
	})
}

// The overview reads the pushed row later than the other row.
func TestByLeftSortsByTheEnd(t *testing.T) {
	withFixture(t, nil, func(t *testing.T, w *fixture) {
		w.take(t, claim("a", 1))
		ends := time.Now().Add(30 * time.Second)
		viewer := w.addViewer(t, "b")
		v := w.Latest(t.Context(), 0)
		time.Sleep(300 * time.Millisecond)
		later := claim("b", 2)
		later.TTL = time.Until(ends) + 100*time.Millisecond
		w.take(t, later)
		v, err := viewer.Next(t.Context(), v)
		if p := v.Page(overview.Query{Sort: overview.ByLeft}); err != nil || !slices.Equal(p.Names(), []string{"a", "b"}) || v.Row("b").At.Equal(v.Row("a").At) {
			t.Errorf("the page has %q; %v", p.Names(), err)
		}
	})
}

func TestLatestReturnsAnOldViewInAnOutage(t *testing.T) {
	withFixture(t, nil, func(t *testing.T, w *fixture) {
		w.take(t, claim("job", 1))
		if v := w.Latest(t.Context(), time.Second); v.Row("job") == nil {
			t.Error("the first scan did not find it")
		}
		time.Sleep(time.Hour)
		w.driver.hangs.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if v := w.Latest(ctx, time.Second); v.Row("job") == nil || time.Since(v.ScannedAt) < time.Hour {
			t.Errorf("rows %v, scanned %v ago; want the scan of an hour ago", v.Rows, time.Since(v.ScannedAt))
		}
	})
}

func TestADamagedNameLeavesTheOthers(t *testing.T) {
	withFixture(t, nil, func(t *testing.T, w *fixture) {
		w.take(t, claim("job", 1))
		w.driver.damaged.Store("broken row")
		v := w.Latest(t.Context(), time.Second)
		if len(v.Damaged) != 1 || v.Damaged[0].Name != "broken row" || v.Row("job") == nil || v.Err != nil {
			t.Errorf("damaged %v, rows %v, error %v; want only the broken row damaged", v.Damaged, v.Rows, v.Err)
		}
	})
}

func TestALeaseThatIsNotRenewedInTimeIsOverdue(t *testing.T) {
	withFixture(t, nil, func(t *testing.T, w *fixture) {
		dead, alive := claim("dead", 1), claim("alive", 2)
		w.take(t, dead)
		w.take(t, alive)
		go followViews(t.Context(), w)
		for range 2 {
			time.Sleep(10 * time.Second)
			servertest.Renews(t, w.others, alive)
		}
		time.Sleep(time.Second)
		v := w.View()
		if r := v.Row("dead"); !r.AnyOverdue() || r.TTLs[0] != 30*time.Second {
			t.Errorf("%+v is not overdue", r)
		}
		if v.Row("alive").AnyOverdue() {
			t.Errorf("%+v is overdue", v.Row("alive"))
		}
		if p := v.Page(overview.Query{}); !slices.Equal(p.Names(), []string{"dead", "alive"}) || p.Counts.Overdue != 1 {
			t.Errorf("the page has %q; %+v", p.Names(), p.Counts)
		}
	})
}

// A released lease that is kept for its minimum hold is not overdue. A holder may renew a
// lease for longer than it claimed.
func TestOverdueUsesTheLongestTTL(t *testing.T) {
	withFixture(t, &overview.Options{BackgroundInterval: time.Second}, func(t *testing.T, w *fixture) {
		kept, longer := claim("kept", 1), claim("longer", 2)
		w.take(t, kept)
		w.take(t, longer)
		time.Sleep(5 * time.Second)
		noError(t, w.others.Release(t.Context(), driver.LeaseRef{Name: kept.Name, Token: kept.Token, MinHold: time.Minute}))
		longer.TTL = time.Minute
		servertest.Renews(t, w.others, longer)
		time.Sleep(40 * time.Second)
		v := w.View()
		if r := v.Row("kept"); r == nil || r.AnyOverdue() {
			t.Errorf("%+v is overdue; it was released", r)
		}
		if r := v.Row("longer"); r == nil || !r.AnyOverdue() {
			t.Errorf("%+v is not overdue; it has had 60 s", r)
		}
	})
}

func TestAPageHasTheRowsOfItsQuery(t *testing.T) {
	withFixture(t, nil, func(t *testing.T, w *fixture) {
		for i := range 10 {
			w.take(t, claim(fmt.Sprintf("a:%d", i), i))
			time.Sleep(time.Millisecond)
		}
		for i := range 3 {
			w.queue(t, claim("a:7", 20+i))
			time.Sleep(time.Millisecond)
		}
		w.queue(t, claim("a:3", 30))
		w.take(t, claim("b", 1))
		v := w.Latest(t.Context(), 0)
		for _, c := range []struct {
			q     overview.Query
			want  []string
			total int
		}{
			{overview.Query{Limit: 3}, []string{"a:7", "a:3", "a:0"}, 11},
			{overview.Query{Limit: 2, Sort: overview.ByName, Offset: 4}, []string{"a:4", "a:5"}, 11},
			{overview.Query{Limit: 2, Sort: overview.ByName, Offset: 400}, []string{"b"}, 11},
			{overview.Query{Limit: 2, Sort: overview.ByName, Offset: -1}, []string{"a:0", "a:1"}, 11},
			{overview.Query{Limit: 2, Sort: overview.ByName, Reversed: true}, []string{"b", "a:9"}, 11},
			{overview.Query{Limit: 2, Sort: overview.ByHeld}, []string{"a:0", "a:1"}, 11},
			{overview.Query{Limit: 2, Sort: overview.ByLeft, Reversed: true}, []string{"b", "a:9"}, 11},
			{overview.Query{Limit: 2, Sort: overview.ByWaiters}, []string{"a:7", "a:3"}, 11},
			{overview.Query{Prefix: "a", Limit: 2, Sort: overview.ByName, Offset: 400}, []string{"a:8", "a:9"}, 10},
			{overview.Query{Prefix: "b"}, []string{"b"}, 1},
			{overview.Query{Prefix: "c"}, []string{}, 0},
		} {
			if p := v.Page(c.q); !slices.Equal(p.Names(), c.want) || p.Total != c.total {
				t.Errorf("%+v: %q of %d, want %q of %d", c.q, p.Names(), p.Total, c.want, c.total)
			}
		}
	})
}

// The backend's clock is an hour ahead, or behind. The durations in the view stay
// correct.
func TestDurationsAreRightIfTheBackendsClockIsWrong(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		bubble.Test(t, func(t *testing.T) {
			w := newFixtureWithClock(t, func() time.Time { return time.Now().Add(ahead) })
			go followViews(t.Context(), w)
			time.Sleep(time.Second)
			w.take(t, claim("job", 1))
			time.Sleep(20 * time.Second)
			v := w.View()
			if held := v.Held(v.Row("job"), time.Now()); held < 19*time.Second || held > 21*time.Second {
				t.Errorf("held for %v by a clock %v ahead, want 20s", held, ahead)
			}
		})
	}
}

func TestDurationsAreRightAfterTheBackendsClockWasSet(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		w := newFixtureWithClock(t, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
		go followViews(t.Context(), w)
		time.Sleep(time.Second)
		w.take(t, claim("before", 1))
		time.Sleep(time.Second + 100*time.Millisecond)
		ahead.Store(int64(time.Hour))
		w.take(t, claim("job", 1))
		time.Sleep(20 * time.Second)
		v := w.View()
		if held := v.Held(v.Row("job"), time.Now()); held < 19*time.Second || held > 21*time.Second {
			t.Errorf("held for %v by a clock that was set an hour ahead, want 20s", held)
		}
	})
}

// Viewers show more names than the overview can watch. The first watches stay when more
// names come.
func TestWatchesStayIfTooManyNamesAreShown(t *testing.T) {
	withFixture(t, nil, func(t *testing.T, w *fixture) {
		for page := range 10 {
			var names []string
			for i := range 50 {
				names = append(names, fmt.Sprintf("name %d %d", page, i))
			}
			w.addViewer(t, names...)
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		if n := w.driver.watches.Load(); n != 256 {
			t.Errorf("%d watches began, want 256", n)
		}
	})
}
