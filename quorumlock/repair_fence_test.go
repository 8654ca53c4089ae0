package quorumlock_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
)

// The clock of the first node is an hour ahead, and determines a lease's fence. The third
// node grants it later, with a fence from its own clock, which renewals raise. So fences
// rise although the second node loses its data and the first does not answer.
func TestFencesRiseThoughTheClockOfARepairedNodeIsBehind(t *testing.T) {
	for name, x := range map[string]struct {
		fences   int  // the length of the range
		late     bool // the third node grants after the others; otherwise it misses the claim
		signaled bool // the claim waits, and is granted by a signal
		waits    bool // the repair waits in the third node's queue
		silent   bool // the third node does not get the first request that raises the fence
	}{
		"TheClaimMissedTheNode":        {},
		"TheClaimMissedItAndWasQueued": {signaled: true},
		"TheLeaseHasARange":            {fences: 1000},
		"TheGrantIsLate":               {late: true},
		"TheSignalIsLate":              {late: true, signaled: true},
		"TheRepairWaitsInTheQueue":     {waits: true},
		"TheFirstRaiseDoesNotArrive":   {silent: true},
	} {
		inBubble(t, name, func(t *testing.T) {
			c := newCluster(3)
			c[0].skew = time.Hour
			one, ones := c.client(t, time.Millisecond)
			two, twos := c.client(t, time.Millisecond)
			signals := servertest.Listen(t, one)
			earlier, holder, stray := mutex("jobs"), queued(mutex("jobs")), mutex("jobs")
			holder.Fences = x.fences

			g := driver.Grant{Fences: 1}
			ones[2].down.Store(!x.late)
			if x.signaled {
				gets(t, two, earlier)
				refused(t, one, holder)
				twos[2].requestDelay.Store(int64(100 * time.Millisecond))
				releases(t, two, earlier)
				g.Fence = (<-signals).Fence
			} else {
				ones[2].requestDelay.Store(int64(100 * time.Millisecond))
				g = gets(t, one, holder)
			}
			time.Sleep(time.Second)
			ones[2].down.Store(false)
			ones[2].requestDelay.Store(0)
			twos[2].requestDelay.Store(0)

			third := c[2].memory.Driver()
			if x.waits {
				_, err := third.Acquire(context.Background(), stray)
				noError(t, err)
				renews(t, one, holder)
				c[2].forgets(t, stray)
			}
			if x.silent {
				ones[2].calls.Store(0)
				// The renewal and the claim arrive, but not the next request.
				c[2].after = func() { ones[2].down.Store(ones[2].calls.Load() == 2) }
				renews(t, one, holder)
				ones[2].down.Store(false)
			}
			renews(t, one, holder)

			c[1].replace(ones[1], twos[1])
			releases(t, one, holder)
			twos[0].down.Store(true)
			last := g.Fence + uint64(g.Fences) - 1
			if next := gets(t, two, mutex("jobs")); next.Fence <= last {
				t.Errorf("fence %d after %d", next.Fence, last)
			}
		})
	}
}

// The third node is slow, so its grants come too late to be counted. Usually their fences
// are not lower than those of the other nodes, and no request raises them. Otherwise one
// request raises the fence of each lease, however long earlier renewals take.
func TestALateGrantIsRaisedOnceAtMost(t *testing.T) {
	for name, raises := range map[string]int64{"TheFenceIsNotLower": 0, "TheFenceIsLower": 1} {
		inBubble(t, name, func(t *testing.T) {
			const leases, renewals = 64, 5
			c := newCluster(3)
			c[0].skew = time.Duration(raises) * time.Hour
			d, lines := c.client(t, time.Millisecond, time.Millisecond, time.Second)
			var all []driver.LeaseRef
			for i := range leases {
				m := mutex("job" + strconv.Itoa(i))
				gets(t, d, m)
				all = append(all, lease(m))
			}
			time.Sleep(3 * time.Second)
			lines[2].calls.Store(0)
			for range renewals {
				answers, err := d.Renew(t.Context(), all)
				noError(t, errors.Join(append(answers, err)...))
				time.Sleep(time.Second)
			}
			time.Sleep(time.Minute)
			if n := lines[2].calls.Load() - renewals; n != raises*leases {
				t.Errorf("%d requests beside the renewals, want %d", n, raises*leases)
			}
		})
	}
}
