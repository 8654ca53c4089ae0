package engine

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/locktable"
)

// known is the time of a server whose clock showed 1 000 s when ours showed zero.
var (
	zero  = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	known = ServerTime{zero, 1_000_000_000}
)

// The server's clock may be a thousandth slower or faster than ours. The bound must not
// exceed it, before and after zero.
func TestTheTimeOfAServerIsALowerBound(t *testing.T) {
	for after, want := range map[time.Duration]locktable.Instant{
		0: 0, 10 * time.Second: 9_990_000, -10 * time.Second: -10_010_000, time.Millisecond: 999,
	} {
		if got := known.LowerBound(zero.Add(after)) - known.Server; got != want {
			t.Errorf("after %v the bound is %d µs higher, want %d", after, got, want)
		}
	}
}

func TestABetterBoundReplacesTheKnownTime(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		what       string
		after      time.Duration // from known.Client to the answer
		trip, tick time.Duration
		server     time.Duration // after known.Server
		want       bool
	}{
		{"the known bound", 1000 * ms, ms, 0, 999 * ms, false},
		{"slightly more", 1000 * ms, ms, 0, 999*ms + 100*time.Microsecond, false},
		{"more", 1000 * ms, ms, 0, 1000 * ms, true},
		{"less, by a slow answer", 1000 * ms, 100 * ms, 0, 950 * ms, false},
		{"less, by a clock that was set back", 1000 * ms, ms, 0, 990 * ms, true},
		{"the tick that it began with", 900 * ms, ms, time.Second, 0, false},
		{"the tick before that", 900 * ms, ms, time.Second, -time.Second, true},
		{"less, after replaceAfter", 15001 * ms, time.Minute, 0, 0, true},
	} {
		now := zero.Add(c.after)
		if got := known.Outdated(known.Server.Add(c.server), c.tick, now.Add(-c.trip), now); got != c.want {
			t.Errorf("an answer with the time %q: Outdated is %v", c.what, got)
		}
		if !(ServerTime{}).Outdated(known.Server.Add(c.server), c.tick, now.Add(-c.trip), now) {
			t.Errorf("an answer with the time %q does not replace the zero value", c.what)
		}
	}
}
