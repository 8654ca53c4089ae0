package quorumlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
)

// A waiter trusts "granted" for its QueueTTL from the sending of its last attempt that
// was answered "queued". These tests have nodes that did not get that attempt, and so
// keep their grants for a shorter time.

// A client gets "granted", and has not read it yet, when it sends the claim again and is
// answered "held", because one of the nodes is not reached. The signal was about places
// that the last attempt did not keep.
func TestAnAttemptInvalidatesEarlierSignals(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(3)
		c[2].skew = time.Second // the fence that they agree on is above all that another grants
		one, _ := c.client(t, time.Millisecond)
		two, lines := c.client(t, time.Millisecond)
		three, _ := c.client(t, time.Millisecond)
		heard := new(grants).listenTo(two)
		holder, waiter, other := mutex("jobs"), queued(mutex("jobs")), queued(mutex("jobs"))
		gets(t, one, holder)
		lines[0].down.Store(true)
		refused(t, two, waiter)
		releases(t, one, holder)
		refused(t, three, other) // it has the node on which the waiter has no place
		time.Sleep(time.Second)
		said, _ := heard.told()
		if len(said) != 1 {
			t.Fatalf("heard %+v; want one grant", said)
		}

		lines[0].down.Store(false)
		lines[1].down.Store(true) // its vote ends 5 s after the first attempt
		_, err := two.Acquire(t.Context(), waiter)
		held, ok := errors.AsType[*driver.HeldError](err)
		if !ok || held.Fence < said[0].Fence {
			t.Errorf("Acquire: %v; want it held, with no fence below %d", err, said[0].Fence)
		}
	})
}

// A node's answer to an earlier attempt comes when the next one has begun, and the node
// never gets the next one.
func TestALateAnswerSaysNothingOfTheNextAttempt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(3)
		one, _ := c.client(t, time.Millisecond)
		two, lines := c.client(t, time.Millisecond)
		heard := new(grants).listenTo(two)
		holder, waiter := mutex("jobs"), queued(mutex("jobs"))
		gets(t, one, holder)
		lines[0].answerDelay.Store(int64(3500 * time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		asks := func() {
			if _, err := two.Acquire(ctx, waiter); !errors.Is(err, driver.ErrHeld) {
				t.Fatal(err)
			}
		}
		asks()
		time.Sleep(3 * time.Second)
		lines[0].hung.Store(true)
		asks()
		time.Sleep(time.Second) // half of it until the node's answer to the first attempt
		heard.told()
		c[0].drops(t, holder) // it keeps its place for 1 s more, and the client would trust it for 4 s
		c[1].drops(t, holder)
		time.Sleep(100 * time.Millisecond)
		if said, looks := heard.told(); len(said) > 0 || looks == 0 {
			t.Errorf("heard %+v, and %d times that it should ask; want only that", said, looks)
		}
		lines[0].hung.Store(false)
		lines[0].answerDelay.Store(0)
		gets(t, two, waiter)
	})
}

// A try keeps no place. A signal after it counts from the attempts that queued, on each
// node.
func TestATryProlongsNoTrust(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(3)
		one, _ := c.client(t, time.Millisecond)
		two, lines := c.client(t, time.Millisecond)
		heard := new(grants).listenTo(two)
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
		heard.told()
		c[0].drops(t, holder) // it keeps its place for 2 s more, and the client would trust it for 5 s
		c[1].drops(t, holder)
		time.Sleep(100 * time.Millisecond)
		if said, looks := heard.told(); len(said) > 0 || looks == 0 {
			t.Errorf("heard %+v, and %d times that it should ask; want only that", said, looks)
		}
		gets(t, two, waiter)
	})
}

// And a try between them does not invalidate signals about the places.
func TestATryLeavesThePlacesAlone(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(3)
		one, _ := c.client(t, time.Millisecond)
		two, _ := c.client(t, time.Millisecond)
		heard := new(grants).listenTo(two)
		holder, waiter := mutex("jobs"), queued(mutex("jobs"))
		gets(t, one, holder)
		refused(t, two, waiter)
		try := waiter
		try.Queue = false
		refused(t, two, try)
		releases(t, one, holder)
		time.Sleep(100 * time.Millisecond)
		if said, looks := heard.told(); len(said) != 1 || looks > 0 {
			t.Errorf("heard %+v, and %d times that it should ask; want one grant", said, looks)
		}
	})
}

// The caller has gone when the nodes have agreed on a fence. They keep the lease for a
// TTL, which is less than the client would trust a signal for.
func TestAGrantThatIsShorterThanThePlaceIsAskedFor(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(3)
		c[1].skew, c[2].skew = 200*time.Millisecond, -300*time.Millisecond // they have to be made to agree
		one, _ := c.client(t, time.Millisecond)
		two, lines := c.client(t, time.Millisecond)
		heard := new(grants).listenTo(two)
		holder, waiter := mutex("jobs"), queued(mutex("jobs"))
		waiter.TTL = time.Second
		gets(t, one, holder)
		refused(t, two, waiter)
		time.Sleep(time.Second)
		releases(t, one, holder)
		time.Sleep(time.Second)
		heard.told()
		for _, l := range lines {
			l.requestDelay.Store(int64(40 * time.Millisecond))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond) // enough for one round trip
		defer cancel()
		if _, err := two.Acquire(ctx, waiter); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Acquire: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
		if said, looks := heard.told(); len(said) > 0 || looks == 0 {
			t.Errorf("heard %+v, and %d times that it should ask; want only that", said, looks)
		}
		again, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
		defer cancel()
		if _, err := two.Acquire(again, waiter); err != nil {
			t.Errorf("asked again: %v; want what was found meanwhile", err)
		}
	})
}

// A permit was counted, and granted. Its client did not get the answer, and asks again.
// By then the permit has lost its majority, and another claim was granted beside the rest
// of it. It finds another node, and has the same fence again.
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
			// but it lasts longer on the third
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond)
		stray := permit(2) // on one node, for a while
		gets(t, c[0].memory.Driver(), stray)
		gets(t, three, y)
		c[0].drops(t, stray)
		down(false, twos[0], twos[1])
		if g, err := two.Acquire(t.Context(), z); !errors.Is(err, driver.ErrHeld) {
			t.Fatalf("a third permit of two: %+v, %v", g, err)
		}
		renewed(t, one, x)
		renewed(t, three, y)
	})
}
