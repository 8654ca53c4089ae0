package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/locktable"
)

// The next poll is due with the first claim. It may be earlier if that claim is due later
// by now, or was dropped.
func TestTheNextPollIsDueWithTheFirstClaim(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		pace := func(waited time.Duration, ahead int) time.Duration {
			return min(max(waited/8, 5*time.Millisecond*time.Duration(1+ahead)), 250*time.Millisecond)
		}
		random := rand.New(rand.NewPCG(1, 2))
		c, all, polledAt := NewClaims(), []*driver.Claim{}, time.Now()
		mayBeEarly := false // since the last poll, a claim was dropped or is due later
		for range 5000 {
			time.Sleep(time.Duration(random.IntN(5)) * time.Millisecond)
			i := random.IntN(len(all) + 1)
			switch action := random.IntN(5); {
			case i == len(all) || len(all) < 20:
				claim := &driver.Claim{Name: "job", Token: driver.NewToken(), QueueTTL: time.Hour}
				c.Acquired(claim, time.Now(), &driver.HeldError{Position: 1 + random.IntN(30), Fence: 1})
				all = append(all, claim)
			case action == 0:
				c.Drop(all[i].Token)
				all, mayBeEarly = slices.Delete(all, i, i+1), true
			case action == 1: // it moves up in the queue
				c.Acquired(all[i], time.Now(), &driver.HeldError{Position: 1 + random.IntN(1+c.waiting[all[i].Token].ahead), Fence: 1})
			case action == 2: // its name was granted to another claim
				e := &locktable.Entry{Fence: uint64(time.Now().UnixMicro())}
				e.Queue = make([]locktable.Waiter, c.waiting[all[i].Token].ahead+1)
				e.Queue[len(e.Queue)-1].Token = all[i].Token
				c.Compare([]Claim{{Token: all[i].Token}}, e, time.Now())
				mayBeEarly = true
			default:
				polledAt, mayBeEarly = time.Now(), false
			}
			var want time.Time
			for _, x := range c.waiting {
				from := polledAt
				if x.changedAt.After(from) {
					from = x.changedAt
				}
				if at := from.Add(pace(from.Sub(x.changedAt), x.ahead)); want.IsZero() || at.Before(want) {
					want = at
				}
			}
			if got := c.nextPoll(polledAt, pace, 24*time.Hour); got.After(want) || got.Before(want) && !mayBeEarly {
				t.Fatalf("%d claims wait; the next poll is in %v; want %v", len(c.waiting), got.Sub(polledAt), want.Sub(polledAt))
			}
		}
	})
}

// BenchmarkNextPoll measures a claim that is added to n waiting claims, and dropped.
func BenchmarkNextPoll(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint("waiting=", n), func(b *testing.B) {
			c, pace := NewClaims(), GrowingPace(5*time.Millisecond, 250*time.Millisecond, 8)
			wait := func() driver.Token {
				claim := &driver.Claim{Name: "job", Token: driver.NewToken(), QueueTTL: time.Hour}
				c.Acquired(claim, time.Now(), &driver.HeldError{Position: 1})
				return claim.Token
			}
			for range n {
				wait()
			}
			polledAt := time.Now()
			for b.Loop() {
				token := wait()
				c.nextPoll(polledAt, pace, time.Second)
				c.Drop(token)
			}
		})
	}
}
