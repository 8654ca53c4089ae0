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

// The fields of a claim are copied to its place in the queue, its lease, its stored form
// and back, and its public form. Each field has a value here, so the test finds one that
// is not copied. A new field of a Claim, a Waiter or a Holder needs a value here.
func TestEachFieldOfAClaimIsCopied(t *testing.T) {
	if wantNoZeroField(t, fullClaim()); t.Failed() {
		return
	}
	for name, kind := range map[string]struct{ weight, limit, fences int }{
		"an exclusive claim with a range": {driver.Exclusive, driver.Unlimited, 7},
		"permits of a semaphore":          {2, 5, 1},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t)
			queued := fullClaim()
			queued.Force, queued.MinFence = false, 0
			queued.Weight, queued.Limit, queued.Fences = kind.weight, kind.limit, kind.fences
			fx.wantGranted(mutex("a"))
			if held := fx.wantHeld(&queued); held.Name != queued.Name {
				t.Errorf("the HeldError has the name %q", held.Name)
			}
			place := locktable.Waiter{
				ClaimInfo: claimInfoOf(t, queued, "every"), Since: locktable.Instant(queued.Ticket), Expires: fx.now.Add(queued.QueueTTL),
				Value: []byte("every value"), ValueBelow: []byte("every condition"),
			}
			wantNoZeroField(t, place)
			fx.storeAndDecode()
			wantDeepEqual(t, "its place", fx.entry.Queue[0], place)
			row, err := locktable.DecodeWaiter(place.Append(nil))
			fx.wantNoError(err)
			wantDeepEqual(t, "its place in a row of its own", row, place)
			wantDeepEqual(t, "its place as it is shown", fx.entry.Public(fx.now, "job").Waiters[0], driver.Waiter{
				Permits: kind.weight, Limit: kind.limit, Owner: fullClaim().Owner, Since: place.Since.Time(), ExpiresIn: queued.QueueTTL,
			})

			fx.sleep(sec)
			fx.wantNoError(fx.release("a", 0))
			fx.wantHolder(t, locktable.Holder{
				ClaimInfo: place.ClaimInfo, Fence: uint64(fx.now), Since: fx.now, Expires: place.Expires, Wrote: true,
			})

			fx.sleep(sec)
			forced := fullClaim()
			forced.Token, forced.Queue, forced.QueueTTL, forced.Ticket = tokenOf("force"), false, 0, 0
			forced.Weight, forced.Limit, forced.Fences = kind.weight, kind.limit, kind.fences
			forced.MinFence = uint64(fx.now.Add(100 * ms))
			forced.ValueBelow = []byte("every value and more")
			fx.wantGranted(&forced)
			fx.wantHolder(t, locktable.Holder{
				ClaimInfo: claimInfoOf(t, forced, "force"), Fence: forced.MinFence, Since: fx.now, Expires: fx.now.Add(forced.TTL), Wrote: true,
			})
			wantDeepEqual(t, "the breaker", brokenBy(t, fx.renew("every", sec)).By, fullClaim().Owner)
		})
	}
}

// claimInfoOf returns the ClaimInfo of a claim. It copies fields by their names.
func claimInfoOf(t *testing.T, c driver.Claim, inbox string) (all locktable.ClaimInfo) {
	t.Helper()
	notCopied := []string{"Name", "QueueTTL", "Queue", "Force", "Value", "ValueBelow", "MinFence", "Ticket"}
	to, from := reflect.ValueOf(&all).Elem(), reflect.ValueOf(c)
	for i := range from.NumField() {
		switch name := from.Type().Field(i).Name; {
		case slices.Contains(notCopied, name):
		case to.FieldByName(name).IsValid():
			to.FieldByName(name).Set(from.Field(i))
		default:
			t.Errorf("driver.Claim.%s: add it to locktable.ClaimInfo, if holders and waiters keep it, or otherwise to notCopied, above", name)
		}
	}
	all.Inbox = inbox
	return all
}

// fullClaim returns a claim whose fields all have a value.
func fullClaim() driver.Claim {
	return driver.Claim{
		Name: "job", Token: tokenOf("every"), Owner: basictest.FullOwner(),
		Weight: 2, Limit: 5, TTL: ttl, QueueTTL: wait, Queue: true, Force: true, LockDelay: 3 * sec, Fences: 7,
		Value: []byte("every value"), ValueBelow: []byte("every condition"),
		MinFence: uint64(start.Add(100 * ms)), Ticket: uint64(start.Add(-100 * ms)),
	}
}

// wantHolder checks the only holder, stored and decoded, and its public form.
func (fx *fixture) wantHolder(t *testing.T, want locktable.Holder) {
	t.Helper()
	wantNoZeroField(t, want)
	fx.storeAndDecode()
	wantDeepEqual(t, "the lease", fx.entry.Holders[0], want)
	shown := driver.Holder{
		Fence: want.Fence, Permits: want.Weight, Limit: want.Limit, Owner: want.Owner, Since: want.Since.Time(),
		TTL: want.TTL, ExpiresIn: fx.now.Until(want.Expires),
	}
	wantDeepEqual(t, "the lease as it is shown", fx.entry.Public(fx.now, "job").Holders[0], shown)
	wantDeepEqual(t, "the lease as a refusal shows it", fx.wantHeld(try(mutex("other"))).Holder, shown)
	wantNoZeroField(t, shown, "Released")
	if !bytes.Equal(fx.entry.Value.Bytes, []byte("every value")) || fx.entry.Value.Fence != want.Fence {
		t.Errorf("the name keeps %+v", fx.entry.Value)
	}
}

// storeAndDecode stores the entry and reads it again.
func (fx *fixture) storeAndDecode() {
	fx.t.Helper()
	e, err := locktable.Decode(fx.entry.Append(nil))
	fx.wantNoError(err)
	fx.entry = e
}

// wantNoZeroField fails the test if a field of v, or of a struct in it, is zero.
func wantNoZeroField(t *testing.T, v any, except ...string) {
	t.Helper()
	for i, s := 0, reflect.ValueOf(v); i < s.NumField(); i++ {
		switch name := s.Type().Field(i).Name; {
		case s.Field(i).IsZero() && !slices.Contains(except, name):
			t.Errorf("%s.%s has no value here: give it one; for the other steps see CONTRIBUTING.md, \"Adding a field to a claim\"", s.Type(), name)
		case s.Field(i).Kind() == reflect.Struct && s.Field(i).Type() != reflect.TypeFor[time.Time]():
			wantNoZeroField(t, s.Field(i).Interface(), except...)
		}
	}
}

func wantDeepEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s is %+v\nwant %+v", what, got, want)
	}
}
