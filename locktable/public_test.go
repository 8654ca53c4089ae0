package locktable_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

func TestPublic(t *testing.T) {
	each(t, map[string]func(l *lab){
		"DoesNotShowTheExpiredAndDoesNotTouchThem": func(l *lab) {
			l.granted(delayed(mutex("a"), time.Minute))
			l.refused(mutex("b"))
			before := string(l.e.Append(nil))
			seen := l.e.Public(l.now.Add(ttl), "job")
			equal(l.t, "shown", len(seen.Holders)+len(seen.Waiters), 0)
			equal(l.t, "closed for", seen.ClosedFor, time.Minute)
			equal(l.t, "stored", string(l.e.Append(nil)), before)
		},
		"NeverShowsAToken": func(l *lab) {
			secret := with(mutex("s3cret"), func(c *driver.Claim) { c.Owner.Client = "a" })
			l.granted(secret)
			l.refused(with(mutex("s3cret2"), func(c *driver.Claim) { c.Owner.Client = "b" }))
			if s := fmt.Sprintf("%#v", l.e.Public(l.now, "job")); strings.Contains(s, "s3cret") || strings.Contains(s, "0x73") {
				l.t.Fatalf("the token is in %s", s)
			}
		},
		"LabelsThatAreShownAreACopy": func(l *lab) {
			labelled := func(c *driver.Claim) { c.Owner.Labels = map[string]string{"k": "v"} }
			l.granted(with(mutex("a"), labelled))
			held := l.refused(with(mutex("b"), labelled))
			held.Holder.Owner.Labels["k"] = "changed by a reader"
			seen := l.e.Public(l.now, "job")
			seen.Holders[0].Owner.Labels["k"] = "changed by a reader"
			seen.Waiters[0].Owner.Labels["k"] = "changed by a reader"
			equal(l.t, "holder's label", l.e.Holders[0].Owner.Labels["k"], "v")
			equal(l.t, "waiter's label", l.e.Queue[0].Owner.Labels["k"], "v")
		},
	})
}

func TestHoldsIsAboutTheLeaseWithThatFence(t *testing.T) {
	e := &locktable.Entry{Holders: []locktable.Holder{
		{ClaimInfo: locktable.ClaimInfo{Token: driver.Token{1}, Fences: 3}, Fence: 10, Expires: 100},
		{ClaimInfo: locktable.ClaimInfo{Fences: 1}, Fence: 20, Expires: 100}, // released, and kept for its minimum hold
	}}
	for _, c := range []struct {
		now   locktable.Instant
		fence uint64
		want  bool
	}{{99, 10, true}, {99, 12, true}, {99, 13, false}, {99, 9, false}, {100, 10, false}, {99, 20, false}, {99, 0, false}} {
		if got := e.Holds(c.now, c.fence); got != c.want {
			t.Errorf("fence %d at %d: %v", c.fence, c.now, got)
		}
	}
}
