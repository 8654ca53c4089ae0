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

// The next poll comes when the first claim is due. It comes sooner if that claim is due
// later by now, or gone.
func TestTheNextPollIsForTheClaimThatIsDueFirst(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		pace := func(waited time.Duration, ahead int) time.Duration {
			return min(max(waited/8, 5*time.Millisecond*time.Duration(1+ahead)), 250*time.Millisecond)
		}
		dice := rand.New(rand.NewPCG(1, 2))
		c, all, polledAt := NewClaims(), []*driver.Claim{}, time.Now()
		later := false // a claim is due later than after the last poll, or gone
		for range 5000 {
			time.Sleep(time.Duration(dice.IntN(5)) * time.Millisecond)
			i := dice.IntN(len(all) + 1)
			switch what := dice.IntN(5); {
			case i == len(all) || len(all) < 20:
				claim := &driver.Claim{Name: "job", Token: driver.NewToken(), QueueTTL: time.Hour}
				c.Acquired(claim, time.Now(), &driver.HeldError{Position: 1 + dice.IntN(30), Fence: 1})
				all = append(all, claim)
			case what == 0:
				c.Drop(all[i].Token)
				all, later = slices.Delete(all, i, i+1), true
			case what == 1: // it comes nearer
				c.Acquired(all[i], time.Now(), &driver.HeldError{Position: 1 + dice.IntN(1+c.waits[all[i].Token].ahead), Fence: 1})
			case what == 2: // another grant
				e := &locktable.Entry{Fence: uint64(time.Now().UnixMicro())}
				e.Queue = make([]locktable.Waiter, c.waits[all[i].Token].ahead+1)
				e.Queue[len(e.Queue)-1].Token = all[i].Token
				c.Compare([]Claim{{Token: all[i].Token}}, e, time.Now())
				later = true
			default:
				polledAt, later = time.Now(), false
			}
			var want time.Time
			for _, x := range c.waits {
				from := polledAt
				if x.changedAt.After(from) {
					from = x.changedAt
				}
				if at := from.Add(pace(from.Sub(x.changedAt), x.ahead)); want.IsZero() || at.Before(want) {
					want = at
				}
			}
			if got := c.nextPoll(polledAt, pace, 24*time.Hour); got.After(want) || got.Before(want) && !later {
				t.Fatalf("%d wait; the next poll is in %v; want %v", len(c.waits), got.Sub(polledAt), want.Sub(polledAt))
			}
		}
	})
}

// BenchmarkNextPoll is a claim that comes to a client which has n others that wait, and
// goes again.
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
