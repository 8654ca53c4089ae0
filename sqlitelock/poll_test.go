package sqlitelock

import (
	"runtime"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

// A process that waits for one name and then ends has no second hand-over from which to
// learn that no wake-up reaches it.
func TestAWaiterPollsOftenFromTheStartUnlessWakeUpsReachIt(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*lockDriver) *lockDriver
		eager   bool
	}{
		"of the holder":     {func(d *lockDriver) *lockDriver { return d }, runtime.GOOS != "linux"},
		"of nobody":         {deafen, true},
		"of one of several": {func(d *lockDriver) *lockDriver { return d }, true},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			a, b := test.prepare(open(t, path, nil)), open(t, path, nil)
			shared := func() driver.Claim {
				c := mutex("job")
				c.Weight = 1
				return c
			}
			gets(t, a, shared())
			if name == "of one of several" {
				gets(t, deafen(open(t, path, nil)), shared())
			}
			waits(t, b, queued("job"))
			if p := b.table.pace(0, 0); (p < slowPace) != test.eager {
				t.Errorf("it looks every %v", p)
			}
		})
	}
}

// A driver polls for the claims that it knows of, and only for these.
func TestADriverLooksOnlyForWhatItAwaits(t *testing.T) {
	path := file(t)
	a, b := open(t, path, nil), open(t, path, nil)
	looks := func(what string, want bool) {
		t.Helper()
		if got := b.table.claims.Any(time.Now()); got != want {
			t.Fatalf("%s it looks: %v; want %v", what, got, want)
		}
	}
	looks("with nothing to wait for", false)
	holder, waiter, one, other := mutex("job"), queued("job"), mutex("job"), mutex("other")
	gets(t, a, holder)
	waits(t, b, waiter)
	looks("while it waits", true)
	releases(t, b, waiter)
	looks("after it left the queue", false)
	waits(t, b, waiter)
	releases(t, a, holder)
	gets(t, b, waiter)
	looks("while it holds", true)
	releases(t, b, waiter)
	looks("after its release", false)
	must(b.AcquireAll(ctx, []driver.Claim{one, other}))(t)
	releases(t, b, one)
	looks("while it holds one of two", true)
	releases(t, b, other)
	looks("after both releases", false)
	lapses := mutex("lapses")
	lapses.TTL = driver.MinTTL
	gets(t, b, lapses)
	time.Sleep(lapses.TTL)
	looks("after it has lapsed", false)
}

func TestADriverThatWakeUpsReachPollsSeldom(t *testing.T) {
	x := &table{Options: Options{Poll: 4 * time.Millisecond}, claims: engine.NewClaims()}
	pace := func(what string, waited, want time.Duration) {
		t.Helper()
		if p := x.pace(waited, 0); p != want {
			t.Errorf("%s: %v; want %v", what, p, want)
		}
	}
	pace("no wake-up reaches it", 0, eagerPace)
	pace("after that", eagerTime, 4*time.Millisecond)
	pace("after a second", halfPaceAfter, 8*time.Millisecond)
	x.holdersCanWake.Store(true)
	pace("wake-ups announce signals", 0, slowPace)
}
