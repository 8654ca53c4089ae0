package uses_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

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
func (c *candidates) run(ctx context.Context, locks *pawl.Client, e *pawl.Election, who, waits int) (ended chan error) {
	c.t.Helper()
	ended = make(chan error, 1)
	go func() { ended <- e.Run(ctx, c.elected(who)) }()
	if waits > 0 {
		waiters(c.t, locks, c.name, waits)
	}
	return ended
}

func TestOneLeadsAndTheNextFollows(t *testing.T) {
	on(t, backends, func(t *testing.T, b *backend) {
		name := fresh(t)
		all := campaign(t, name)
		var elections []*pawl.Election
		var stops []context.CancelFunc
		var ended []chan error
		var now term
		watcher := b.client(t)
		for who := range 3 {
			c := b.client(t)
			e := c.Election(name, pawl.WithValue(fmt.Append(nil, "10.0.0.", who)))
			ctx, stop := context.WithCancel(background)
			defer stop()
			ended = append(ended, all.run(ctx, c, e, who, who))
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
