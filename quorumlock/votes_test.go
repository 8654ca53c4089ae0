package quorumlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/servertest"
)

// A node signals a grant. Then a node without data, whose clock is behind, replaces it.
// The client does not count the signal of the old node as a vote of the new one.
func TestAGrantThatANodeHasForgottenIsNoVote(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(3)
		c[0].skew = time.Hour
		one, ones := c.client(t, time.Millisecond)
		two, twos := c.client(t, time.Millisecond)
		three, threes := c.client(t, time.Millisecond)
		signals := servertest.Listen(t, two)
		holder, second, third := mutex("jobs"), queued(mutex("jobs")), queued(mutex("jobs"))
		gets(t, one, holder)
		down(true, threes[0], threes[1])
		if _, err := three.Acquire(t.Context(), third); !errors.Is(err, driver.ErrUnavailable) {
			// the third claim is in the queue of the last node only
			t.Fatal(err)
		}
		down(false, threes[0], threes[1])
		refused(t, two, second)
		refused(t, three, third)
		c[0].forgets(t, holder) // it signals the second claim, which has no majority
		time.Sleep(time.Second)

		c[0].skew = 0
		c[0].replace(ones[0], twos[0], threes[0])
		releases(t, one, holder) // one of the other nodes grants the second claim, one the third
		g := gets(t, three, third)
		_, err := two.Acquire(t.Context(), second)
		time.Sleep(time.Second)
		if granted, _ := takeAll(signals); err == nil || len(granted) > 0 {
			t.Fatalf("two holders: fence %d, and %v %+v", g.Fence, err, granted)
		}
		releases(t, three, third)
		gets(t, two, second)
	})
}

// The last node grants Y after Z, so Y has a higher number there. Then another node loses
// Y, and Y keeps its majority by the late vote. Z must still count Y.
func TestAPermitThatGotAVoteLaterIsCounted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(3)
		c[0].skew = -time.Second
		d, lines := c.client(t, time.Millisecond)
		x, y, z := permit(2), permit(2), queued(permit(2))
		other, _ := c.client(t, time.Millisecond)
		signals := servertest.Listen(t, other)
		lines[2].down.Store(true)
		gets(t, d, x)
		gets(t, d, y)
		lines[2].down.Store(false)
		refused(t, other, z) // granted by the node that missed X and Y
		g := gets(t, d, y)   // now this node grants Y, too
		c[0].forgets(t, y)   // this node grants the permit to Z
		time.Sleep(time.Second)
		_, err := other.Acquire(t.Context(), z)
		renewed(t, d, x, y)
		if granted, _ := takeAll(signals); err == nil || len(granted) > 0 {
			t.Fatalf("a third permit of two: %v %+v, beside the fence %d", err, granted, g.Fence)
		}
	})
}

// Two claims for the last permit at once count each other. They are not both granted, and
// seldom both refused.
func TestOneOfTwoGetsTheLastPermit(t *testing.T) {
	neither := 0
	for range 100 {
		bubble.Test(t, func(t *testing.T) {
			c := newCluster(3)
			first, lines := c.client(t, time.Millisecond)
			for i := range 2 { // the first node and the last have two free permits
				lines[2*i].down.Store(true)
				gets(t, first, permit(3))
				lines[2*i].down.Store(false)
			}
			answers := make(chan error, 2)
			for range 2 {
				d, lines := c.client(t, time.Millisecond)
				for _, l := range lines {
					l.jitter.Store(int64(3 * time.Millisecond))
				}
				go func() {
					_, err := d.Acquire(t.Context(), permit(3))
					answers <- err
				}()
			}
			one, two := <-answers, <-answers
			switch {
			case one == nil && two == nil:
				t.Fatal("both got the last permit")
			case one != nil && two != nil:
				neither++
			}
		})
	}
	if neither > 10 {
		t.Errorf("in %d of 100 runs neither got the last permit", neither)
	}
}

// A holder that repeats its claim gets its fence again, even if a claim with a larger
// limit was granted beside it meanwhile.
func TestARepeatedPermitIsNotCountedAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d, _ := newCluster(3).client(t, time.Millisecond)
		small, large := mutex("pool"), mutex("pool")
		small.Weight, small.Limit = 1, 1
		large.Weight, large.Limit = 2, 3
		g := gets(t, d, small)
		gets(t, d, large)
		if again := gets(t, d, small); again.Fence != g.Fence {
			t.Errorf("the repeat has the fence %d, want %d", again.Fence, g.Fence)
		}
	})
}
