package servertest_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
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

// A recorder is a test whose failures are only recorded.
type recorder struct{ recordtest.Recorder }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// A planted driver is one of memory, with a defect.
type planted struct {
	driver.Driver
	acquire func(ctx context.Context, c driver.Claim) (driver.Grant, error) // nil: as it is
	moved   atomic.Pointer[driver.Driver]                                   // the memory that it uses from now on
}

// moves makes a planted driver use another memory, which is empty.
func (p *planted) moves(to *memlock.Memory) {
	time.Sleep(time.Second) // fences come from the clock
	d := to.Driver()
	p.moved.Store(&d)
}

func (p *planted) now() driver.Driver {
	if d := p.moved.Load(); d != nil {
		return *d
	}
	return p.Driver
}

func (p *planted) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if p.acquire != nil {
		return p.acquire(ctx, c)
	}
	return p.now().Acquire(ctx, c)
}

func (p *planted) Renew(ctx context.Context, l []driver.LeaseRef) ([]error, error) {
	return p.now().Renew(ctx, l)
}

func (p *planted) Release(ctx context.Context, l driver.LeaseRef) error {
	return p.now().Release(ctx, l)
}

func (p *planted) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	return p.now().Inspect(ctx, name)
}

// refuses tests that a check fails with these words, or passes if there are none. It runs
// in virtual time, on two drivers of memory.
func refuses(t *testing.T, name, want string, check func(tb servertest.TB, a, b *planted)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			m := memlock.NewMemory(nil)
			r, done := &recorder{recordtest.Recorder{TB: t}}, make(chan struct{})
			go func() {
				defer close(done)
				check(r, &planted{Driver: m.Driver()}, &planted{Driver: m.Driver()})
			}()
			<-done
			said := strings.Join(r.End(), "\n")
			if want == "" && said != "" || !strings.Contains(said, want) {
				t.Errorf("it says %q; want %q", said, want)
			}
		})
	})
}

// falls returns grants with a fence that is too low.
func falls(p *planted) {
	p.acquire = func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
		g, err := p.now().Acquire(ctx, c)
		g.Fence = 1
		return g, err
	}
}

func TestRidesThroughRefuses(t *testing.T) {
	type on = func(tb servertest.TB, a, b *planted)
	for name, c := range map[string]struct {
		want string
		f    on
	}{
		"nothing": {"", func(tb servertest.TB, a, b *planted) { servertest.RidesThrough(tb, a, b, func() {}) }},
		"a server that forgets": {"the holder, after it", func(tb servertest.TB, a, b *planted) {
			servertest.RidesThrough(tb, a, b, func() { a.moves(memlock.NewMemory(nil)) })
		}},
		"a grant of what is held": {"the waiter got", func(tb servertest.TB, a, b *planted) {
			servertest.RidesThrough(tb, a, b, func() { b.moves(memlock.NewMemory(nil)); time.Sleep(time.Minute) })
		}},
		"a fence that falls": {"fence 1 after", func(tb servertest.TB, a, b *planted) { falls(b); servertest.RidesThrough(tb, a, b, func() {}) }},
	} {
		refuses(t, name, c.want, c.f)
	}
}

func TestStormRefuses(t *testing.T) {
	storm := func(tb servertest.TB, a, b *planted) { servertest.Storm(tb, []driver.Driver{a, b}, func() {}) }
	refuses(t, "nothing", "", storm)
	refuses(t, "two holders", "VIOLATION", func(tb servertest.TB, a, b *planted) { b.moves(memlock.NewMemory(nil)); storm(tb, a, b) })
	refuses(t, "a fence that falls", "VIOLATION", func(tb servertest.TB, a, b *planted) { falls(b); storm(tb, a, b) })
	refuses(t, "connections that are not made again", "only", func(tb servertest.TB, a, b *planted) {
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

func TestTurnsRefuse(t *testing.T) {
	turns := func(tb servertest.TB, a, b *planted) {
		u := servertest.NewTurns(tb, 4*time.Second)
		for who, d := range map[string]*planted{"a": a, "b": b} {
			c, err := pawl.New(d, &pawl.Options{Observer: &pawl.Observer{}})
			if err != nil {
				tb.Fatalf("%v", err)
			}
			tb.Cleanup(func() { _ = c.Close() })
			u.Take(who, c)
		}
		u.Until(20, "a", "b")
		if n := u.Check(); n > 0 {
			tb.Errorf("%d were lost", n)
		}
	}
	refuses(t, "nothing", "", turns)
	refuses(t, "two holders", "two believed", func(tb servertest.TB, a, b *planted) { b.moves(memlock.NewMemory(nil)); turns(tb, a, b) })
	refuses(t, "a fence that falls", "fence 1 after", func(tb servertest.TB, a, b *planted) { falls(b); turns(tb, a, b) })
}

// A paused is a driver of a server that can stand still.
type paused struct {
	driver.Driver
	mu     sync.Mutex
	still  chan struct{} // nil if the server runs
	late   bool          // when it resumes, it grants abandoned claims
	slowly bool          // calls take longer than their ctx
}

func (p *paused) wait(ctx context.Context) error {
	p.mu.Lock()
	still := p.still
	p.mu.Unlock()
	if still == nil {
		return nil
	}
	select {
	case <-still:
		return nil
	case <-ctx.Done():
		if p.slowly {
			time.Sleep(20 * time.Second)
		}
		return errors.Join(driver.ErrUnavailable, ctx.Err())
	}
}

func (p *paused) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := p.wait(ctx); err != nil {
		if p.late {
			go func() { _, _ = p.Driver.Acquire(context.WithoutCancel(ctx), c) }()
		}
		return driver.Grant{}, err
	}
	return p.Driver.Acquire(ctx, c)
}

func (p *paused) Renew(ctx context.Context, l []driver.LeaseRef) ([]error, error) {
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	return p.Driver.Renew(ctx, l)
}

func (p *paused) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	if err := p.wait(ctx); err != nil {
		return driver.Entry{}, err
	}
	return p.Driver.Inspect(ctx, name)
}

func TestStandsStillRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		want         string
		late, slowly bool
	}{
		"nothing":                 {},
		"a grant that comes late": {want: "Acquire after it", late: true},
		"a call without an end":   {want: "with 200 ms to go", slowly: true},
	} {
		refuses(t, name, c.want, func(tb servertest.TB, a, b *planted) {
			holder, other := &paused{Driver: a.Driver}, &paused{Driver: b.Driver, late: c.late, slowly: c.slowly}
			set := func(still chan struct{}) func() {
				return func() {
					for _, p := range []*paused{holder, other} {
						p.mu.Lock()
						p.still = still
						p.mu.Unlock()
					}
				}
			}
			servertest.StandsStill(tb, holder, other, set(make(chan struct{})), set(nil))
		})
	}
}

// swinging returns drivers of a memory, and sets its clock.
func swinging() (one, two driver.Driver, set func(by time.Duration)) {
	c, at := memlock.NewClock(time.Now()), time.Duration(0)
	m := memlock.NewMemory(&memlock.Options{Now: c.Now})
	return m.Driver(), m.Driver(), func(by time.Duration) {
		c.Advance(by - at)
		at = by
	}
}

func TestClocksAreRefused(t *testing.T) {
	ends := func(tb servertest.TB, one, two driver.Driver, set func(time.Duration)) {
		servertest.ClockEndsLeases(tb, one, two, set)
	}
	refuses(t, "a clock that ends leases", "", func(tb servertest.TB, _, _ *planted) {
		one, two, set := swinging()
		ends(tb, one, two, set)
	})
	refuses(t, "a clock that ends none", "want it granted", func(tb servertest.TB, a, b *planted) { ends(tb, a, b, func(time.Duration) {}) })
	refuses(t, "a fence that falls", "fence 1 after", func(tb servertest.TB, _, _ *planted) {
		one, two, set := swinging()
		low := &planted{Driver: two}
		falls(low)
		ends(tb, one, low, set)
	})
	nothing := func(tb servertest.TB, one, two driver.Driver, set func(time.Duration)) {
		servertest.ClockEndsNothing(tb, one, two, servertest.BelowSwing, set)
	}
	refuses(t, "a clock by which no lease ends", "", func(tb servertest.TB, a, b *planted) { nothing(tb, a, b, func(time.Duration) {}) })
	refuses(t, "a clock that ends what it should not", "want it held", func(tb servertest.TB, _, _ *planted) {
		one, two, set := swinging()
		nothing(tb, one, two, set)
	})
}

func TestForgetsRefuses(t *testing.T) {
	erase := func(a, b *planted) func() {
		return func() { m := memlock.NewMemory(nil); a.moves(m); b.moves(m) }
	}
	refuses(t, "nothing", "", func(tb servertest.TB, a, b *planted) { servertest.Forgets(tb, a, b, erase(a, b)) })
	refuses(t, "a lease that stays", "want ErrNoSuchLease", func(tb servertest.TB, a, b *planted) { servertest.Forgets(tb, a, b, func() {}) })
	refuses(t, "a fence that falls", "fence 1 after", func(tb servertest.TB, a, b *planted) { falls(b); servertest.Forgets(tb, a, b, erase(a, b)) })
}

func TestFullDiskRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		want string
		err  error
	}{
		"nothing":                 {"", &driver.Error{Hint: "the disk is full"}},
		"a disk that is not full": {"on a full disk", nil},
		"an error without a hint": {"on a full disk", &driver.Error{}},
		"an error for good":       {"on a full disk", &driver.Error{Hint: "the disk is full", Permanent: true}},
	} {
		refuses(t, name, c.want, func(tb servertest.TB, a, _ *planted) {
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
