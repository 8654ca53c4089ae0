package locktable_test

import (
	"bytes"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/locktable"
)

// A claim is copied field by field: to a place in the queue, from there to a lease, to
// its stored form and back, and to what is shown. Here each field has a value, so one
// that is forgotten on the way is missing at the end. A new field of a Claim, a Waiter or
// a Holder fails the test until it has a value here.
func TestEachFieldOfAClaimArrives(t *testing.T) {
	if known(t, every()); t.Failed() {
		return
	}
	for name, kind := range map[string]struct{ weight, limit, fences int }{
		"an exclusive claim with a range": {driver.Exclusive, driver.Unlimited, 7},
		"permits of a semaphore":          {2, 5, 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			queued := every()
			queued.Force, queued.MinFence = false, 0
			queued.Weight, queued.Limit, queued.Fences = kind.weight, kind.limit, kind.fences
			l.granted(mutex("a"))
			if held := l.refused(&queued); held.Name != queued.Name {
				t.Errorf("the refusal is about %q", held.Name)
			}
			place := locktable.Waiter{
				ClaimInfo: claimInfoOf(t, queued, "every"), Since: locktable.Instant(queued.Ticket), Expires: l.now.Add(queued.QueueTTL),
				Value: []byte("every value"), ValueBelow: []byte("every condition"),
			}
			known(t, place)
			l.decoded()
			same(t, "its place", l.e.Queue[0], place)
			row, err := locktable.DecodeWaiter(place.Append(nil))
			l.ok(err)
			same(t, "its place in a row of its own", row, place)
			same(t, "its place as it is shown", l.e.Public(l.now, "job").Waiters[0], driver.Waiter{
				Permits: kind.weight, Limit: kind.limit, Owner: every().Owner, Since: place.Since.Time(), ExpiresIn: queued.QueueTTL,
			})

			l.sleep(sec)
			l.ok(l.release("a", 0))
			l.arrived(t, locktable.Holder{
				ClaimInfo: place.ClaimInfo, Fence: uint64(l.now), Since: l.now, Expires: place.Expires, Wrote: true,
			})

			l.sleep(sec)
			forced := every()
			forced.Token, forced.Queue, forced.QueueTTL, forced.Ticket = tokenOf("force"), false, 0, 0
			forced.Weight, forced.Limit, forced.Fences = kind.weight, kind.limit, kind.fences
			forced.MinFence = uint64(l.now.Add(100 * ms))
			forced.ValueBelow = []byte("every value and more")
			l.granted(&forced)
			l.arrived(t, locktable.Holder{
				ClaimInfo: claimInfoOf(t, forced, "force"), Fence: forced.MinFence, Since: l.now, Expires: l.now.Add(forced.TTL), Wrote: true,
			})
			same(t, "by whom it was broken", brokenBy(t, l.renew("every", sec)).By, every().Owner)
		})
	}
}

// claimInfoOf returns the part of a claim that goes with it, by the names of the fields.
func claimInfoOf(t *testing.T, c driver.Claim, inbox string) (all locktable.ClaimInfo) {
	t.Helper()
	stays := []string{"Name", "QueueTTL", "Queue", "Force", "Value", "ValueBelow", "MinFence", "Ticket"}
	to, from := reflect.ValueOf(&all).Elem(), reflect.ValueOf(c)
	for i := range from.NumField() {
		switch name := from.Type().Field(i).Name; {
		case slices.Contains(stays, name):
		case to.FieldByName(name).IsValid():
			to.FieldByName(name).Set(from.Field(i))
		default:
			t.Errorf("driver.Claim.%s: add it to locktable.ClaimInfo, if holders and waiters carry it, or else to stays, above", name)
		}
	}
	all.Inbox = inbox
	return all
}

// every is a claim of whose fields each has a value.
func every() driver.Claim {
	return driver.Claim{
		Name: "job", Token: tokenOf("every"), Owner: basictest.FullOwner(),
		Weight: 2, Limit: 5, TTL: ttl, QueueTTL: wait, Queue: true, Force: true, LockDelay: 3 * sec, Fences: 7,
		Value: []byte("every value"), ValueBelow: []byte("every condition"),
		MinFence: uint64(start.Add(100 * ms)), Ticket: uint64(start.Add(-100 * ms)),
	}
}

// arrived checks the only holder, stored and read again, and what is shown of it.
func (l *lab) arrived(t *testing.T, want locktable.Holder) {
	t.Helper()
	known(t, want)
	l.decoded()
	same(t, "the lease", l.e.Holders[0], want)
	shown := driver.Holder{
		Fence: want.Fence, Permits: want.Weight, Limit: want.Limit, Owner: want.Owner, Since: want.Since.Time(),
		TTL: want.TTL, ExpiresIn: l.now.Until(want.Expires),
	}
	same(t, "the lease as it is shown", l.e.Public(l.now, "job").Holders[0], shown)
	same(t, "the lease as a refusal shows it", l.refused(try(mutex("other"))).Holder, shown)
	known(t, shown, "Released")
	if !bytes.Equal(l.e.Value.Bytes, []byte("every value")) || l.e.Value.Fence != want.Fence {
		t.Errorf("the name keeps %+v", l.e.Value)
	}
}

// decoded stores the entry and reads it again.
func (l *lab) decoded() {
	l.t.Helper()
	e, err := locktable.Decode(l.e.Append(nil))
	l.ok(err)
	l.e = e
}

// known fails the test if a field of a struct, or of a struct in it, has no value.
func known(t *testing.T, v any, but ...string) {
	t.Helper()
	for i, s := 0, reflect.ValueOf(v); i < s.NumField(); i++ {
		switch name := s.Type().Field(i).Name; {
		case s.Field(i).IsZero() && !slices.Contains(but, name):
			t.Errorf("%s.%s has no value here: give it one; CONTRIBUTING.md has the rest, see \"Adding a field to a claim\"", s.Type(), name)
		case s.Field(i).Kind() == reflect.Struct && s.Field(i).Type() != reflect.TypeFor[time.Time]():
			known(t, s.Field(i).Interface(), but...)
		}
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s is %+v\nwant %+v", what, got, want)
	}
}
