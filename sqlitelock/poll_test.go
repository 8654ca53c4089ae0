package sqlitelock

import (
	"runtime"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/servertest"
)

// A process that waits for one name and then ends sees only one hand-over. So it cannot
// learn from an earlier hand-over that no wake-up reaches it.
func TestAWaiterPollsOftenFromTheStartUnlessWakeUpsReachIt(t *testing.T) {
	for name, test := range map[string]struct {
		sockets []bool // whether each holder has one
		eager   bool
	}{
		"the holder has a socket":          {[]bool{true}, runtime.GOOS != "linux"},
		"the holder has no socket":         {[]bool{false}, true},
		"one of two holders has no socket": {[]bool{true, false}, true},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			for _, hasSocket := range test.sockets {
				holder := open(t, path, nil)
				if !hasSocket {
					withoutWakeUps(holder)
				}
				gets(t, holder, servertest.Reader("job"))
			}
			waiter := open(t, path, nil)
			isRefused(t, waiter, queued("job"))
			if p := waiter.table.pace(0, 0); (p < slowPace) != test.eager {
				t.Errorf("the driver polls every %v, want a short pause: %t", p, test.eager)
			}
		})
	}
}

func TestADriverPollsOnlyWhileItWaitsOrHolds(t *testing.T) {
	path := newPath(t)
	a, b := open(t, path, nil), open(t, path, nil)
	wantPolling := func(what string, want bool) {
		t.Helper()
		if got := b.table.claims.Any(time.Now()); got != want {
			t.Fatalf("%s the driver polls: %v; want %v", what, got, want)
		}
	}
	wantPolling("with nothing to wait for", false)
	holder, waiter, one, other := mutex("job"), queued("job"), mutex("job"), mutex("other")
	gets(t, a, holder)
	isRefused(t, b, waiter)
	wantPolling("while it waits", true)
	releases(t, b, waiter)
	wantPolling("after it left the queue", false)
	isRefused(t, b, waiter)
	releases(t, a, holder)
	gets(t, b, waiter)
	wantPolling("while it holds", true)
	releases(t, b, waiter)
	wantPolling("after its release", false)
	must(b.AcquireAll(ctx, []driver.Claim{one, other}))(t)
	releases(t, b, one)
	wantPolling("while it holds one of two", true)
	releases(t, b, other)
	wantPolling("after both releases", false)
	short := mutex("short")
	short.TTL = driver.MinTTL
	gets(t, b, short)
	time.Sleep(short.TTL)
	wantPolling("after its lease has expired", false)
}

func TestADriverThatWakeUpsReachPollsSeldom(t *testing.T) {
	driverTable := &table{Options: Options{Poll: 4 * time.Millisecond}, claims: engine.NewClaims()}
	wantPace := func(what string, waited, want time.Duration) {
		t.Helper()
		if p := driverTable.pace(waited, 0); p != want {
			t.Errorf("%s: %v; want %v", what, p, want)
		}
	}
	wantPace("no wake-up reaches it", 0, eagerPace)
	wantPace("after that", eagerTime, 4*time.Millisecond)
	wantPace("after a second", halfPaceAfter, 8*time.Millisecond)
	driverTable.holdersCanWake.Store(true)
	wantPace("wake-ups announce signals", 0, slowPace)
}
