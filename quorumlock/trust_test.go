package quorumlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/servertest"
)

// A waiter trusts a grant signal for its QueueTTL after it sent the last attempt that was
// queued. In these tests some nodes do not get that attempt, and so keep their grants for
// a shorter time.

// A client has not read a grant signal yet when it sends the claim again. This attempt is
// refused, because one of the nodes is not reached. The signal was about places that the
// attempt did not keep.
func TestAnAttemptInvalidatesEarlierSignals(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(3)
		c[2].skew = time.Second // so the agreed fence is above those of the other nodes
		one, _ := c.client(t, time.Millisecond)
		two, lines := c.client(t, time.Millisecond)
		three, _ := c.client(t, time.Millisecond)
		signals := servertest.Listen(t, two)
		holder, waiter, other := mutex("jobs"), queued(mutex("jobs")), queued(mutex("jobs"))
		gets(t, one, holder)
		lines[0].down.Store(true)
		refused(t, two, waiter)
		releases(t, one, holder)
		refused(t, three, other) // granted by the node on which the waiter has no place
		time.Sleep(time.Second)
		granted, _ := takeAll(signals)
		if len(granted) != 1 {
			t.Fatalf("signals %+v; want one grant", granted)
		}

		lines[0].down.Store(false)
		lines[1].down.Store(true) // its vote ends 5 s after the first attempt
		_, err := two.Acquire(t.Context(), waiter)
		held, ok := errors.AsType[*driver.HeldError](err)
		if !ok || held.Fence < granted[0].Fence {
			t.Errorf("Acquire: %v; want ErrHeld, with a fence of at least %d", err, granted[0].Fence)
		}
	})
}

// A node's answer to an earlier attempt arrives after the next one has begun, which the
// node never gets.
func TestALateAnswerDoesNotCountForTheNextAttempt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(3)
		one, _ := c.client(t, time.Millisecond)
		two, lines := c.client(t, time.Millisecond)
		signals := servertest.Listen(t, two)
		holder, waiter := mutex("jobs"), queued(mutex("jobs"))
		gets(t, one, holder)
		lines[0].answerDelay.Store(int64(3500 * time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		attempt := func() {
			if _, err := two.Acquire(ctx, waiter); !errors.Is(err, driver.ErrHeld) {
				t.Fatal(err)
			}
		}
		attempt()
		time.Sleep(3 * time.Second)
		lines[0].hung.Store(true)
		attempt()
		time.Sleep(time.Second) // the node's answer to the first attempt arrives after half of it
		takeAll(signals)
		c[0].forgets(t, holder) // it keeps the place for 1 s more, but the client would trust the signal for 4 s
		c[1].forgets(t, holder)
		time.Sleep(100 * time.Millisecond)
		if granted, retries := takeAll(signals); len(granted) > 0 || retries == 0 {
			t.Errorf("grants %+v and %d retries; want only retries", granted, retries)
		}
		lines[0].hung.Store(false)
		lines[0].answerDelay.Store(0)
		gets(t, two, waiter)
	})
}

// A try keeps no place. So the trust in a later signal counts from the last queued
// attempt on each node.
func TestATryDoesNotExtendTheTrustInSignals(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(3)
		one, _ := c.client(t, time.Millisecond)
		two, lines := c.client(t, time.Millisecond)
		signals := servertest.Listen(t, two)
		holder, waiter := mutex("jobs"), queued(mutex("jobs"))
		gets(t, one, holder)
		refused(t, two, waiter)
		time.Sleep(3 * time.Second)
		lines[0].down.Store(true)
		refused(t, two, waiter)
		lines[0].down.Store(false)
		try := waiter
		try.Queue = false
		refused(t, two, try)
		takeAll(signals)
		c[0].forgets(t, holder) // it keeps the place for 2 s more, but the client would trust the signal for 5 s
		c[1].forgets(t, holder)
		time.Sleep(100 * time.Millisecond)
		if granted, retries := takeAll(signals); len(granted) > 0 || retries == 0 {
			t.Errorf("grants %+v and %d retries; want only retries", granted, retries)
		}
		gets(t, two, waiter)
	})
}

// A try between queued attempts does not invalidate the signals about their places.
func TestATryDoesNotInvalidateSignals(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(3)
		one, _ := c.client(t, time.Millisecond)
		two, _ := c.client(t, time.Millisecond)
		signals := servertest.Listen(t, two)
		holder, waiter := mutex("jobs"), queued(mutex("jobs"))
		gets(t, one, holder)
		refused(t, two, waiter)
		try := waiter
		try.Queue = false
		refused(t, two, try)
		releases(t, one, holder)
		time.Sleep(100 * time.Millisecond)
		if granted, retries := takeAll(signals); len(granted) != 1 || retries > 0 {
			t.Errorf("grants %+v and %d retries; want one grant", granted, retries)
		}
	})
}

// The caller has given up when the nodes agree on a fence. They keep the lease for its
// TTL, which is shorter than the trust in a signal.
func TestAGrantThatIsShorterThanThePlaceSignalsARetry(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(3)
		c[1].skew, c[2].skew = 200*time.Millisecond, -300*time.Millisecond // so the nodes must agree on a fence
		one, _ := c.client(t, time.Millisecond)
		two, lines := c.client(t, time.Millisecond)
		signals := servertest.Listen(t, two)
		holder, waiter := mutex("jobs"), queued(mutex("jobs"))
		waiter.TTL = time.Second
		gets(t, one, holder)
		refused(t, two, waiter)
		time.Sleep(time.Second)
		releases(t, one, holder)
		time.Sleep(time.Second)
		takeAll(signals)
		for _, l := range lines {
			l.requestDelay.Store(int64(40 * time.Millisecond))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond) // enough for one round trip
		defer cancel()
		if _, err := two.Acquire(ctx, waiter); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Acquire: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
		if granted, retries := takeAll(signals); len(granted) > 0 || retries == 0 {
			t.Errorf("grants %+v and %d retries; want only retries", granted, retries)
		}
		again, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
		defer cancel()
		if _, err := two.Acquire(again, waiter); err != nil {
			t.Errorf("second attempt: %v; want the grant that was found meanwhile", err)
		}
	})
}

// A permit was counted and granted, but its client did not get the answer, and retries.
// By then the permit has lost its majority, and another claim was granted. The retry
// reaches another node, and gets the same fence again.
func TestAPermitThatLostItsMajorityIsCountedAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(3)
		c[2].skew = time.Hour
		one, ones := c.client(t, time.Millisecond)
		two, twos := c.client(t, time.Millisecond)
		three, _ := c.client(t, time.Millisecond)
		x, y, z := permit(2), permit(2), queued(permit(2))
		z.TTL, z.QueueTTL = 2*time.Second, 2*time.Second
		ones[2].down.Store(true)
		gets(t, one, x)
		twos[0].down.Store(true)
		gets(t, two, z)
		time.Sleep(time.Second)
		twos[1].down.Store(true)
		if _, err := two.Acquire(t.Context(), z); !errors.Is(err, driver.ErrUnavailable) {
			// the third node extends it
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond)
		stray := permit(2) // on one node, for a while
		gets(t, c[0].memory.Driver(), stray)
		gets(t, three, y)
		c[0].forgets(t, stray)
		down(false, twos[0], twos[1])
		refused(t, two, z) // a third permit of two
		renewed(t, one, x)
		renewed(t, three, y)
	})
}
