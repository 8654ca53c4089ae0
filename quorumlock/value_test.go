package quorumlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/memlock"
)

// rising returns a try that writes v, and is granted only if the value is below v.
func rising(v string) driver.Claim {
	c := mutex("job")
	c.Value, c.ValueBelow = []byte(v), []byte(v)
	return c
}

// keepFailed makes a node keep the value of a claim that failed halfway.
func (s *server) keepFailed(t *testing.T, v string) {
	t.Helper()
	node, c := s.connect(0), rising(v)
	gets(t, node.Driver, c)
	releases(t, node.Driver, c)
}

func hasValue(t *testing.T, d driver.Driver, want string) driver.Entry {
	t.Helper()
	e, err := d.Inspect(t.Context(), "job")
	if err != nil || string(e.Value) != want {
		t.Fatalf("the value is %q, with the fence %d, %v; want %q", e.Value, e.ValueFence, err, want)
	}
	return e
}

func refusedForValue(t *testing.T, d driver.Driver, c driver.Claim, value string) {
	t.Helper()
	g, err := d.Acquire(t.Context(), c)
	if refused, ok := errors.AsType[*driver.ValueNotBelowError](err); !ok || string(refused.Value) != value {
		t.Fatalf("Acquire = %+v, %v; want ErrValueNotBelow with the value %q", g, err, value)
	}
}

func TestAValueOnAMinorityRefusesNoClaim(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(3)
		d, _ := c.client(t, time.Millisecond)
		c[0].keepFailed(t, "9")
		if e := hasValue(t, d, ""); e.Value != nil {
			t.Error("Inspect returns a value that only one node has")
		}
		first := rising("5")
		g := gets(t, d, first)
		if e := hasValue(t, d, "5"); e.ValueFence != g.Fence {
			t.Errorf("the value has the fence %d, the grant %d", e.ValueFence, g.Fence)
		}
		renewed(t, d, first)
		time.Sleep(time.Second) // it is repaired
		if e, _ := c[0].connect(0).Driver.Inspect(t.Context(), "job"); string(e.Value) != "5" {
			t.Errorf("the repaired node has %q", e.Value)
		}
		releases(t, d, first)
		refusedForValue(t, d, rising("5"), "5")
		releases(t, d, granted(t, d, rising("6")))
	})
}

func granted(t *testing.T, d driver.Driver, c driver.Claim) driver.Claim {
	t.Helper()
	gets(t, d, c)
	return c
}

func TestAValueOfAMajorityIsRefusedByAnyMajority(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(3)
		one, ones := c.client(t, time.Millisecond)
		two, twos := c.client(t, time.Millisecond)
		ones[0].down.Store(true) // the other nodes have the value
		releases(t, one, granted(t, one, rising("5")))
		twos[2].down.Store(true) // one of the two nodes that client two reaches has the value
		hasValue(t, two, "5")
		claim := queued(rising("5"))
		if _, err := two.Acquire(t.Context(), claim); err == nil || errors.Is(err, driver.ErrValueNotBelow) || errors.Is(err, driver.ErrHeld) {
			t.Fatalf("one node grants, one refuses and one is down: %v; want an unknown outcome", err)
		}
		twos[2].down.Store(false)
		refusedForValue(t, two, claim, "5")
		time.Sleep(time.Second)
		c.keepsNothing(t, "job")
	})
}

func TestClaimsThatSplitTheVoteLeaveNoValue(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(3)
		for i := range c { // each reaches only one node
			d, lines := c.client(t, time.Millisecond)
			for j, l := range lines {
				l.down.Store(i != j)
			}
			if _, err := d.Acquire(t.Context(), rising("5")); !errors.Is(err, driver.ErrUnavailable) {
				t.Fatal(err)
			}
			down(false, lines...)
		}
		time.Sleep(time.Second)
		d, _ := c.client(t, time.Millisecond)
		if e := hasValue(t, d, ""); e.Value != nil {
			t.Error("the nodes keep the value of a claim that was not granted")
		}
		gets(t, d, rising("5"))
	})
}

// All nodes grant the claim, but two of them cannot be reached when its value is written.
func TestAClaimWhoseValueCannotBeWrittenIsNotGranted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(3)
		d, lines := c.client(t, time.Millisecond)
		for i := 1; i < 3; i++ {
			c[i].after = func() { lines[i].down.Store(true) }
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := d.Acquire(ctx, rising("5")); !errors.Is(err, driver.ErrUnavailable) {
			t.Fatalf("Acquire: %v; want ErrUnavailable", err)
		}
		for i := 1; i < 3; i++ {
			c[i].after = nil
			lines[i].down.Store(false)
		}
		time.Sleep(time.Minute) // the quorum releases its grants
		other, _ := c.client(t, time.Millisecond)
		gets(t, other, rising("5")) // a value on one node refuses no claim
		hasValue(t, other, "5")
	})
}

// Another client repeats the claim of a holder. The repeat does not undo a later write of
// the holder, not even on a node that has missed that write.
func TestARepeatOnAQuorumWritesNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(3)
		one, ones := c.client(t, time.Millisecond)
		two, twos := c.client(t, time.Millisecond)
		claim := rising("5")
		g := gets(t, one, claim)
		ones[2].down.Store(true)
		l := lease(claim)
		l.Value = []byte("7")
		if answers, err := one.Renew(t.Context(), []driver.LeaseRef{l}); err != nil || answers[0] != nil {
			t.Fatal(answers, err)
		}
		if again := gets(t, two, claim); again.Fence != g.Fence {
			t.Errorf("the repeat has the fence %d, the first claim %d", again.Fence, g.Fence)
		}
		if e := hasValue(t, two, "7"); e.ValueFence != g.Fence {
			t.Errorf("the value has the fence %d, the grant %d", e.ValueFence, g.Fence)
		}
		twos[0].down.Store(true) // client two reads the second node, and the third, which missed the write
		hasValue(t, two, "7")
	})
}

// A quorum of one node need not raise fences, so the node writes the value itself.
func TestASingleNodeThatCannotRaiseFencesKeepsAValue(t *testing.T) {
	d := quorumOf(t, nil, struct{ driver.Driver }{memlock.New(nil)})
	c := rising("5")
	gets(t, d, c)
	hasValue(t, d, "5")
	releases(t, d, c)
	refusedForValue(t, d, rising("5"), "5")
}
