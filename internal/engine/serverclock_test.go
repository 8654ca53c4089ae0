package engine

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/locktable"
)

// known is a server's clock that stood at 1 000 s when ours was at zero.
var (
	zero  = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	known = ServerTime{zero, 1_000_000_000}
)

// The server's clock may be slower than ours or quicker, by a thousandth: the bound is
// never above it, later and earlier.
func TestTheTimeOfAServerIsALowerBound(t *testing.T) {
	for after, want := range map[time.Duration]locktable.Instant{
		0: 0, 10 * time.Second: 9_990_000, -10 * time.Second: -10_010_000, time.Millisecond: 999,
	} {
		if got := known.LowerBound(zero.Add(after)) - known.Server; got != want {
			t.Errorf("after %v it is %d µs further, want %d", after, got, want)
		}
	}
}

func TestAnAnswerReplacesWhatIsKnownIfItSaysMore(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		what       string
		after      time.Duration // known was received; the answer is
		trip, tick time.Duration
		says       time.Duration // after known.Server
		want       bool
	}{
		{"as much as is known", 1000 * ms, ms, 0, 999 * ms, false},
		{"hardly more", 1000 * ms, ms, 0, 999*ms + 100*time.Microsecond, false},
		{"more", 1000 * ms, ms, 0, 1000 * ms, true},
		{"less, by a slow answer", 1000 * ms, 100 * ms, 0, 950 * ms, false},
		{"less, by a clock that was set back", 1000 * ms, ms, 0, 990 * ms, true},
		{"the tick that it began with", 900 * ms, ms, time.Second, 0, false},
		{"the tick before that", 900 * ms, ms, time.Second, -time.Second, true},
		{"less, long after", 15001 * ms, time.Minute, 0, 0, true},
	} {
		now := zero.Add(c.after)
		if got := known.Outdated(known.Server.Add(c.says), c.tick, now.Add(-c.trip), now); got != c.want {
			t.Errorf("an answer that says %s: %v", c.what, got)
		}
		if !(ServerTime{}).Outdated(known.Server.Add(c.says), c.tick, now.Add(-c.trip), now) {
			t.Errorf("an answer that says %s does not replace nothing", c.what)
		}
	}
}
