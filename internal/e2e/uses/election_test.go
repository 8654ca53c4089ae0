package uses_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// A term is one term of a leader, as the elected function saw it.
type term struct {
	who   int
	fence uint64
}

// candidates campaign for one name. They check that no two lead at the same time: when
// one begins, the lease of the previous one is over. (On a slow machine, its function may
// still run.)
type candidates struct {
	t     testing.TB
	name  string
	terms chan term // as they begin
	last  atomic.Pointer[pawl.Lease]
}

func campaign(t testing.TB, name string) *candidates {
	return &candidates{t: t, name: name, terms: make(chan term, 100)}
}

// elected leads until its context ends.
func (c *candidates) elected(who int) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		lease, _ := pawl.LeaseOf(ctx, c.name)
		if last := c.last.Swap(lease); last != nil && last.Err() == nil {
			c.t.Error("two lead")
		}
		c.terms <- term{who, lease.Fence()}
		<-ctx.Done()
		return ctx.Err()
	}
}

// next returns the next term. Its number is greater than the last.
func (c *candidates) next(after term, who int) term {
	c.t.Helper()
	now := get(c.t, c.terms, fmt.Sprint("the lead of ", who))
	if now.who != who || now.fence <= after.fence {
		c.t.Fatalf("after %+v leads %+v, want %d", after, now, who)
	}
	return now
}

// run campaigns in the background, and returns when it leads or waits as the nth.
func (c *candidates) run(ctx context.Context, locks *pawl.Client, e *pawl.Election, name string, who, waits int) (ended chan error) {
	c.t.Helper()
	ended = make(chan error, 1)
	go func() { ended <- e.Run(ctx, c.elected(who)) }()
	if waits > 0 {
		waiters(c.t, locks, name, waits)
	}
	return ended
}

func TestOneLeadsAndTheNextFollows(t *testing.T) {
	onEach(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		all := campaign(t, name)
		var elections []*pawl.Election
		var stops []context.CancelFunc
		var ended []chan error
		var now term
		watcher := b.client(t, nil)
		for who := range 3 {
			c := b.client(t, nil)
			e := c.Election(name, pawl.WithValue(fmt.Append(nil, "10.0.0.", who)))
			ctx, stop := context.WithCancel(background)
			defer stop()
			ended = append(ended, all.run(ctx, c, e, name, who, who))
			if who == 0 {
				now = all.next(now, 0)
			}
			elections, stops = append(elections, e), append(stops, stop)
		}
		l := must(elections[2].Leader(background))(t)
		if l.Term != now.fence || string(l.Value) != "10.0.0.0" || l.Since.IsZero() || l.Owner.PID == 0 {
			t.Errorf("the leader is %+v, want %+v", l, now)
		}
		noError(t, elections[0].SetValue(background, []byte("moved")))
		if l := must(watcher.Election(name).Leader(background))(t); string(l.Value) != "moved" {
			t.Errorf("the leader says %q of itself", l.Value)
		}

		if elections[1].Resign() || !elections[0].Resign() {
			t.Error("another one has resigned")
		}
		now = all.next(now, 1)
		waiters(t, watcher, name, 2) // the one that resigned is back, behind the other
		stops[1]()
		isError(t, get(t, ended[1], "the end of Run"), context.Canceled)
		now = all.next(now, 2)
		stops[2]()
		isError(t, get(t, ended[2], "the end of Run"), context.Canceled)
		all.next(now, 0)
		if l := must(elections[1].Leader(background))(t); string(l.Value) != "moved" {
			t.Errorf("in its second term it says %q of itself", l.Value)
		}
		stops[0]()
		isError(t, get(t, ended[0], "the end of Run"), context.Canceled)
		if l := must(elections[1].Leader(background))(t); l.Term != 0 {
			t.Errorf("the leader is %+v, and there is none", l)
		}
	})
}

// A leader that cannot reach the backend loses its term. Its function learns of it before
// the next leader begins, and it campaigns again when it can.
func TestALeaderThatIsCutOffIsFollowed(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: it waits for real time")
	}
	onEach(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		all := campaign(t, name)
		ctx, stop := context.WithCancel(background)
		a, cut := b.mortal(t, brief)
		other := b.client(t, nil)
		first := all.run(ctx, a, a.Election(name), name, 0, 0)
		now := all.next(term{}, 0)
		e := other.Election(name)
		second := all.run(ctx, other, e, name, 1, 1)
		cut.die()
		now = all.next(now, 1)
		cut.dead.Store(false)
		waiters(t, other, name, 1)
		e.Resign()
		all.next(now, 0)
		stop()
		isError(t, get(t, first, "the end of Run"), context.Canceled)
		isError(t, get(t, second, "the end of Run"), context.Canceled)
		free(t, other, name)
	})
}

func TestWhatTheElectedFunctionReturnsEndsRunAndFreesTheName(t *testing.T) {
	onEach(t, func(t *testing.T, b *backend) {
		name, c, other := fresh(t), b.client(t, nil), b.client(t, nil)
		own := errors.New("no disk")
		e := c.Election(name)
		for what, ends := range map[string]struct {
			f    func() error
			want error
		}{
			"nil":   {func() error { return nil }, nil},
			"error": {func() error { return own }, own},
			"panic": {func() error { panic(own) }, own},
		} {
			err := func() (err error) {
				defer func() {
					if p := recover(); p != nil {
						err, _ = p.(error)
					}
				}()
				return e.Run(soon(t), func(context.Context) error { return ends.f() })
			}()
			if !errors.Is(err, ends.want) {
				t.Errorf("%s: Run ends with %v, want %v", what, err, ends.want)
			}
			lease := must(other.Mutex(name).TryLock(soon(t)))(t) // nothing is left
			noError(t, lease.Release(background))
		}
	})
}

func TestWatchTellsWhoLeads(t *testing.T) {
	onEach(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		all := campaign(t, name)
		a, watcher := b.client(t, nil), b.client(t, nil)
		ctx, stop := context.WithCancel(background)
		defer stop()
		seen := make(chan pawl.Leader, 100)
		over := make(chan struct{})
		go func() {
			defer close(over)
			for l, err := range watcher.Election(name).Watch(ctx) {
				if err != nil {
					t.Error(err)
				}
				seen <- l
			}
		}()
		if l := get(t, seen, "the first look"); l.Term != 0 {
			t.Errorf("%+v leads", l)
		}
		leads, resign := context.WithCancel(background)
		e := a.Election(name, pawl.WithValue([]byte("a")))
		ended := all.run(leads, a, e, name, 0, 0)
		now := all.next(term{}, 0)
		if l := get(t, seen, "the leader"); l.Term != now.fence || string(l.Value) != "a" {
			t.Errorf("%+v leads, want %+v", l, now)
		}
		noError(t, e.SetValue(background, []byte("b")))
		if l := get(t, seen, "what it says of itself"); l.Term != now.fence || string(l.Value) != "b" {
			t.Errorf("%+v leads, want b", l)
		}
		resign()
		if l := get(t, seen, "its end"); l.Term != 0 {
			t.Errorf("%+v leads", l)
		}
		isError(t, get(t, ended, "the end of Run"), context.Canceled)
		stop()
		get(t, over, "the end of Watch")
	})
}

// The next term begins within two round trips: the release, and at most one request of
// the next leader. The test counts requests, not time. (If the backend pushes, as all do
// on Linux, there is no second request.)
func TestTheNextLeadsWithinTwoRequestsOfAShutdown(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: it waits for real time")
	}
	ways := map[string]func(c *pawl.Client, stop func()){
		"Shutdown": func(c *pawl.Client, _ func()) { go c.Shutdown(background) },
		"Stop":     func(_ *pawl.Client, stop func()) { stop() },
	}
	onEach(t, func(t *testing.T, b *backend) {
		for how, leave := range ways {
			t.Run(how, func(t *testing.T) {
				name := fresh(t)
				all := campaign(t, name)
				patient := &pawl.Options{TTL: time.Hour, QueueTTL: time.Hour} // so that nothing is renewed meanwhile
				a, leaders := b.mortal(t, patient)
				next, followers := b.mortal(t, patient)
				ctx, stop := context.WithCancel(background)
				defer stop()
				all.run(ctx, a, a.Election(name), name, 0, 0)
				now := all.next(term{}, 0)
				requests := func() int64 { return leaders.requests.Load() + followers.requests.Load() }
				var asked atomic.Int64
				began := make(chan struct{})
				last, end := context.WithCancel(background)
				defer end()
				ended := make(chan error, 1)
				go func() {
					ended <- next.Election(name).Run(last, func(ctx context.Context) error {
						asked.Add(requests())
						close(began)
						return all.elected(1)(ctx)
					})
				}()
				waiters(t, b.client(t, nil), name, 1)
				eventually(t, "the follower has its answer", func() bool { return followers.answered.Load() > 0 })
				asked.Store(-requests())
				leave(a, stop)
				get(t, began, "the next leader")
				all.next(now, 1)
				t.Logf("%d requests", asked.Load())
				if n := asked.Load(); n < 1 || n > 2 {
					t.Errorf("the next one led after %d requests, want the release, and one more at most", n)
				}
				stop()
				end()
				isError(t, get(t, ended, "the end of Run"), context.Canceled)
			})
		}
	})
}
