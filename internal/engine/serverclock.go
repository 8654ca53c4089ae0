package engine

import (
	"time"

	"github.com/pawl-go/pawl/locktable"
)

// ServerTime is what a client knows of its server's clock: at this moment of the client's
// clock the server's clock stood at Is, or further. The zero value knows nothing.
type ServerTime struct {
	At time.Time // when the answer was received
	Is locktable.Instant
}

const (
	// replaceAfter is the age from which any answer replaces what is known.
	replaceAfter = 15 * time.Second

	// leastGainMicros is by how much more a younger answer has to say.
	leastGainMicros = 100
)

// By is a lower bound of the server's clock at a moment of the client's clock. Two clocks
// never run at the same speed: By takes a thousandth off the time between.
func (s ServerTime) By(t time.Time) locktable.Instant {
	passed := t.Sub(s.At)
	off := passed / 1000
	return s.Is + locktable.Instant((passed-max(off, -off))/time.Microsecond)
}

// Outdated reports whether an answer that is received now replaces what is known: the
// server said that its clock stands at is, in whole ticks, to a request of that time.
//
// An answer that says less than what was known when its request was sent is another
// server's, or the clock was set back. Any other replaces what is known if it says more.
func (s ServerTime) Outdated(is locktable.Instant, tick time.Duration, sent, now time.Time) bool {
	return is.Add(tick) < s.By(sent) || is > s.By(now)+leastGainMicros || now.Sub(s.At) > replaceAfter
}
