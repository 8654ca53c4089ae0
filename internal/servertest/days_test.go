package servertest_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/recordtest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/memlock"
)

// A recorder is a test that only records its failures.
type recorder struct{ recordtest.Recorder }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// A faulty driver is a memory driver with a defect.
type faulty struct {
	driver.Driver
	acquire func(ctx context.Context, c driver.Claim) (driver.Grant, error) // replaces Acquire, unless nil
	before  func(ctx context.Context) error                                 // called before requests, unless nil
	moved   atomic.Pointer[driver.Driver]                                   // the driver that it uses after moveTo
}

// moveTo makes a faulty driver use another, empty memory.
func (p *faulty) moveTo(to *memlock.Memory) {
	time.Sleep(time.Second) // so that fences rise, because they come from the clock
	d := to.Driver()
	p.moved.Store(&d)
}

func (p *faulty) current() driver.Driver {
	if d := p.moved.Load(); d != nil {
		return *d
	}
	return p.Driver
}

func (p *faulty) waitBefore(ctx context.Context) error {
	if p.before == nil {
		return nil
	}
	return p.before(ctx)
}

func (p *faulty) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if p.acquire != nil {
		return p.acquire(ctx, c)
	}
	if err := p.waitBefore(ctx); err != nil {
		return driver.Grant{}, err
	}
	return p.current().Acquire(ctx, c)
}

func (p *faulty) Renew(ctx context.Context, l []driver.LeaseRef) ([]error, error) {
	if err := p.waitBefore(ctx); err != nil {
		return nil, err
	}
	return p.current().Renew(ctx, l)
}

func (p *faulty) Release(ctx context.Context, l driver.LeaseRef) error {
	return p.current().Release(ctx, l)
}

func (p *faulty) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	if err := p.waitBefore(ctx); err != nil {
		return driver.Entry{}, err
	}
	return p.current().Inspect(ctx, name)
}

// checkFails tests that a check fails with want in its message, or passes if want is "".
// The check runs in virtual time, on two memory drivers.
func checkFails(t *testing.T, name, want string, check func(tb servertest.TB, a, b *faulty)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			m := memlock.NewMemory(nil)
			r, done := &recorder{recordtest.Recorder{TB: t}}, make(chan struct{})
			go func() {
				defer close(done)
				check(r, &faulty{Driver: m.Driver()}, &faulty{Driver: m.Driver()})
			}()
			<-done
			failures := strings.Join(r.End(), "\n")
			if want == "" && failures != "" || !strings.Contains(failures, want) {
				t.Errorf("the failures are %q; want %q", failures, want)
			}
		})
	})
}

// lowerFences makes Acquire return grants with a fence that is too low.
func lowerFences(p *faulty) {
	p.acquire = func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
		g, err := p.current().Acquire(ctx, c)
		g.Fence = 1
		return g, err
	}
}

func TestRidesThroughFindsDefects(t *testing.T) {
	type check = func(tb servertest.TB, a, b *faulty)
	for name, c := range map[string]struct {
		want string
		f    check
	}{
		"no defect": {"", func(tb servertest.TB, a, b *faulty) { servertest.RidesThrough(tb, a, b, func() {}) }},
		"a server that forgets": {"the holder, after the fault", func(tb servertest.TB, a, b *faulty) {
			servertest.RidesThrough(tb, a, b, func() { a.moveTo(memlock.NewMemory(nil)) })
		}},
		"a grant of a held name": {"the waiter got", func(tb servertest.TB, a, b *faulty) {
			servertest.RidesThrough(tb, a, b, func() { b.moveTo(memlock.NewMemory(nil)); time.Sleep(time.Minute) })
		}},
		"a fence that falls": {"fence 1 after", func(tb servertest.TB, a, b *faulty) { lowerFences(b); servertest.RidesThrough(tb, a, b, func() {}) }},
	} {
		checkFails(t, name, c.want, c.f)
	}
}

func TestStormFindsDefects(t *testing.T) {
	storm := func(tb servertest.TB, a, b *faulty) { servertest.Storm(tb, []driver.Driver{a, b}, func() {}) }
	checkFails(t, "no defect", "", storm)
	checkFails(t, "two holders", "VIOLATION", func(tb servertest.TB, a, b *faulty) { b.moveTo(memlock.NewMemory(nil)); storm(tb, a, b) })
	checkFails(t, "a fence that falls", "VIOLATION", func(tb servertest.TB, a, b *faulty) { lowerFences(b); storm(tb, a, b) })
	checkFails(t, "connections that are not restored", "only", func(tb servertest.TB, a, b *faulty) {
		var cut atomic.Bool
		a.acquire = func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
			if cut.Load() {
				return driver.Grant{}, driver.ErrUnavailable
			}
			return a.Driver.Acquire(ctx, c)
		}
		b.acquire = a.acquire
		servertest.Storm(tb, []driver.Driver{a, b}, func() { cut.Store(true) })
	})
}

func TestTurnsFindDefects(t *testing.T) {
	turns := func(tb servertest.TB, a, b *faulty) {
		u := servertest.NewTurns(tb, 4*time.Second)
		for who, d := range map[string]*faulty{"a": a, "b": b} {
			c, err := pawl.New(d, &pawl.Options{Observer: &pawl.Observer{}})
			if err != nil {
				tb.Fatalf("%v", err)
			}
			tb.Cleanup(func() { _ = c.Close() })
			u.Take(who, c)
		}
		u.Until(20, "a", "b")
		if n := u.Check(); n > 0 {
			tb.Errorf("%d leases were lost", n)
		}
	}
	checkFails(t, "no defect", "", turns)
	checkFails(t, "two holders", "two clients were sure", func(tb servertest.TB, a, b *faulty) { b.moveTo(memlock.NewMemory(nil)); turns(tb, a, b) })
	checkFails(t, "a fence that falls", "fence 1 after", func(tb servertest.TB, a, b *faulty) { lowerFences(b); turns(tb, a, b) })
}

func TestStandsStillFindsDefects(t *testing.T) {
	for name, c := range map[string]struct {
		want       string
		late, slow bool // the other client's claims arrive after their ctx; its calls outlast their ctx
	}{
		"no defect":               {},
		"a grant that comes late": {want: "Acquire after the pause", late: true},
		"a call without an end":   {want: "with a timeout of 200 ms", slow: true},
	} {
		checkFails(t, name, c.want, func(tb servertest.TB, holder, other *faulty) {
			var paused atomic.Bool
			waitWhilePaused := func(slow bool) func(ctx context.Context) error {
				return func(ctx context.Context) error {
					if !paused.Load() {
						return nil
					}
					<-ctx.Done()
					if slow {
						time.Sleep(20 * time.Second)
					}
					return errors.Join(driver.ErrUnavailable, ctx.Err())
				}
			}
			holder.before, other.before = waitWhilePaused(false), waitWhilePaused(c.slow)
			other.acquire = func(ctx context.Context, claim driver.Claim) (driver.Grant, error) {
				if err := other.before(ctx); err != nil {
					if c.late {
						go func() { _, _ = other.Driver.Acquire(context.WithoutCancel(ctx), claim) }()
					}
					return driver.Grant{}, err
				}
				return other.Driver.Acquire(ctx, claim)
			}
			servertest.StandsStill(tb, holder, other, func() { paused.Store(true) }, func() { paused.Store(false) })
		})
	}
}

// newDriversWithClock returns two drivers of a memory, and a function to set its clock.
func newDriversWithClock() (one, two driver.Driver, set func(by time.Duration)) {
	c, at := memlock.NewClock(time.Now()), time.Duration(0)
	m := memlock.NewMemory(&memlock.Options{Now: c.Now})
	return m.Driver(), m.Driver(), func(by time.Duration) {
		c.Advance(by - at)
		at = by
	}
}

func TestClockChecksFindDefects(t *testing.T) {
	ends := func(tb servertest.TB, one, two driver.Driver, set func(time.Duration)) {
		servertest.ClockEndsLeases(tb, one, two, set)
	}
	checkFails(t, "a clock that ends leases", "", func(tb servertest.TB, _, _ *faulty) {
		one, two, set := newDriversWithClock()
		ends(tb, one, two, set)
	})
	checkFails(t, "a clock that ends no lease", "want a grant", func(tb servertest.TB, a, b *faulty) { ends(tb, a, b, func(time.Duration) {}) })
	checkFails(t, "a fence that falls", "fence 1 after", func(tb servertest.TB, _, _ *faulty) {
		one, two, set := newDriversWithClock()
		low := &faulty{Driver: two}
		lowerFences(low)
		ends(tb, one, low, set)
	})
	endsNothing := func(tb servertest.TB, one, two driver.Driver, set func(time.Duration)) {
		servertest.ClockEndsNothing(tb, one, two, servertest.BelowSwing, set)
	}
	checkFails(t, "a clock that should end no lease", "", func(tb servertest.TB, a, b *faulty) { endsNothing(tb, a, b, func(time.Duration) {}) })
	checkFails(t, "a clock that should end no lease but does", "want the lease held", func(tb servertest.TB, _, _ *faulty) {
		one, two, set := newDriversWithClock()
		endsNothing(tb, one, two, set)
	})
}

func TestForgetsFindsDefects(t *testing.T) {
	erase := func(a, b *faulty) func() {
		return func() { m := memlock.NewMemory(nil); a.moveTo(m); b.moveTo(m) }
	}
	checkFails(t, "no defect", "", func(tb servertest.TB, a, b *faulty) { servertest.Forgets(tb, a, b, erase(a, b)) })
	checkFails(t, "a lease that stays", "want ErrNoSuchLease", func(tb servertest.TB, a, b *faulty) { servertest.Forgets(tb, a, b, func() {}) })
	checkFails(t, "a fence that falls", "fence 1 after", func(tb servertest.TB, a, b *faulty) { lowerFences(b); servertest.Forgets(tb, a, b, erase(a, b)) })
}

func TestFullDiskFindsDefects(t *testing.T) {
	for name, c := range map[string]struct {
		want string
		err  error
	}{
		"no defect":               {"", &driver.Error{Hint: "the disk is full"}},
		"a disk that is not full": {"on a full disk", nil},
		"an error without a hint": {"on a full disk", &driver.Error{}},
		"a permanent error":       {"on a full disk", &driver.Error{Hint: "the disk is full", Permanent: true}},
	} {
		checkFails(t, name, c.want, func(tb servertest.TB, a, _ *faulty) {
			var full atomic.Bool
			a.acquire = func(ctx context.Context, claim driver.Claim) (driver.Grant, error) {
				if full.Load() && c.err != nil {
					return driver.Grant{}, c.err
				}
				return a.Driver.Acquire(ctx, claim)
			}
			servertest.FullDisk(tb, a, func() { full.Store(true) }, func() { full.Store(false) })
		})
	}
}
