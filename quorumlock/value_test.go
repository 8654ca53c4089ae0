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

// risingValue returns a try that writes v, and is granted only if the value is below v.
func risingValue(v string) driver.Claim {
	c := mutex("job")
	c.Value, c.ValueBelow = []byte(v), []byte(v)
	return c
}

// keepFailedValue makes a node keep the value of a claim that failed halfway.
func (s *server) keepFailedValue(t *testing.T, v string) {
	t.Helper()
	node, c := s.connect(0), risingValue(v)
	mustAcquire(t, node.Driver, c)
	mustRelease(t, node.Driver, c)
}

func wantValue(t *testing.T, d driver.Driver, want string) driver.Entry {
	t.Helper()
	e, err := d.Inspect(t.Context(), "job")
	if err != nil || string(e.Value) != want {
		t.Fatalf("the value is %q, with the fence %d, %v; want %q", e.Value, e.ValueFence, err, want)
	}
	return e
}

func wantValueNotBelow(t *testing.T, d driver.Driver, c driver.Claim, value string) {
	t.Helper()
	g, err := d.Acquire(t.Context(), c)
	if refused, ok := errors.AsType[*driver.ValueNotBelowError](err); !ok || string(refused.Value) != value {
		t.Fatalf("Acquire = %+v, %v; want ErrValueNotBelow with the value %q", g, err, value)
	}
}

func TestAValueOnAMinorityRefusesNoClaim(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		d, _ := servers.client(t, time.Millisecond)
		servers[0].keepFailedValue(t, "9")
		if e := wantValue(t, d, ""); e.Value != nil {
			t.Error("Inspect returns a value that only one node has")
		}
		first := risingValue("5")
		g := mustAcquire(t, d, first)
		if e := wantValue(t, d, "5"); e.ValueFence != g.Fence {
			t.Errorf("the value has the fence %d, the grant %d", e.ValueFence, g.Fence)
		}
		mustRenew(t, d, first)
		time.Sleep(time.Second) // the repair arrives
		if e, _ := servers[0].connect(0).Driver.Inspect(t.Context(), "job"); string(e.Value) != "5" {
			t.Errorf("the repaired node has %q", e.Value)
		}
		mustRelease(t, d, first)
		wantValueNotBelow(t, d, risingValue("5"), "5")
		mustRelease(t, d, acquired(t, d, risingValue("6")))
	})
}

func acquired(t *testing.T, d driver.Driver, c driver.Claim) driver.Claim {
	t.Helper()
	mustAcquire(t, d, c)
	return c
}

func TestAValueOfAMajorityIsRefusedByAnyMajority(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		one, oneLines := servers.client(t, time.Millisecond)
		two, twoLines := servers.client(t, time.Millisecond)
		oneLines[0].down.Store(true) // the other nodes have the value
		mustRelease(t, one, acquired(t, one, risingValue("5")))
		twoLines[2].down.Store(true) // one of the two nodes that client two reaches has the value
		wantValue(t, two, "5")
		claim := queued(risingValue("5"))
		if _, err := two.Acquire(t.Context(), claim); err == nil || errors.Is(err, driver.ErrValueNotBelow) || errors.Is(err, driver.ErrHeld) {
			t.Fatalf("one node grants, one refuses and one is down: %v; want an unknown outcome", err)
		}
		twoLines[2].down.Store(false)
		wantValueNotBelow(t, two, claim, "5")
		time.Sleep(time.Second)
		servers.wantNothingKept(t, "job")
	})
}

func TestClaimsThatSplitTheVoteLeaveNoValue(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		for i := range servers { // each client reaches only one node
			d, lines := servers.client(t, time.Millisecond)
			for j, l := range lines {
				l.down.Store(i != j)
			}
			if _, err := d.Acquire(t.Context(), risingValue("5")); !errors.Is(err, driver.ErrUnavailable) {
				t.Fatal(err)
			}
			setDown(false, lines...)
		}
		time.Sleep(time.Second)
		d, _ := servers.client(t, time.Millisecond)
		if e := wantValue(t, d, ""); e.Value != nil {
			t.Error("the nodes keep the value of a claim that was not granted")
		}
		mustAcquire(t, d, risingValue("5"))
	})
}

// All nodes grant the claim, but two of them cannot be reached when its value is written.
func TestAClaimWhoseValueCannotBeWrittenIsNotGranted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		d, lines := servers.client(t, time.Millisecond)
		for i := 1; i < 3; i++ {
			servers[i].afterRequest = func() { lines[i].down.Store(true) }
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := d.Acquire(ctx, risingValue("5")); !errors.Is(err, driver.ErrUnavailable) {
			t.Fatalf("Acquire: %v; want ErrUnavailable", err)
		}
		for i := 1; i < 3; i++ {
			servers[i].afterRequest = nil
			lines[i].down.Store(false)
		}
		time.Sleep(time.Minute) // the quorum releases its grants
		other, _ := servers.client(t, time.Millisecond)
		mustAcquire(t, other, risingValue("5")) // a value on one node refuses no claim
		wantValue(t, other, "5")
	})
}

// Another client repeats the claim of a holder. The repeat does not undo a later write of
// the holder, not even on a node that has missed that write.
func TestARepeatOnAQuorumWritesNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		one, oneLines := servers.client(t, time.Millisecond)
		two, twoLines := servers.client(t, time.Millisecond)
		claim := risingValue("5")
		g := mustAcquire(t, one, claim)
		oneLines[2].down.Store(true)
		l := lease(claim)
		l.Value = []byte("7")
		if answers, err := one.Renew(t.Context(), []driver.LeaseRef{l}); err != nil || answers[0] != nil {
			t.Fatal(answers, err)
		}
		if again := mustAcquire(t, two, claim); again.Fence != g.Fence {
			t.Errorf("the repeat has the fence %d, the first claim %d", again.Fence, g.Fence)
		}
		if e := wantValue(t, two, "7"); e.ValueFence != g.Fence {
			t.Errorf("the value has the fence %d, the grant %d", e.ValueFence, g.Fence)
		}
		twoLines[0].down.Store(true) // client two reads the second node, and the third, which missed the write
		wantValue(t, two, "7")
	})
}

// A quorum of one node need not raise fences, so the node writes the value itself.
func TestASingleNodeThatCannotRaiseFencesKeepsAValue(t *testing.T) {
	d := quorumOf(t, nil, struct{ driver.Driver }{memlock.New(nil)})
	c := risingValue("5")
	mustAcquire(t, d, c)
	wantValue(t, d, "5")
	mustRelease(t, d, c)
	wantValueNotBelow(t, d, risingValue("5"), "5")
}
