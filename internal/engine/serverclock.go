package engine

import (
	"time"

	"github.com/pawl-go/pawl/locktable"
)

// ServerTime is a lower bound for the server's clock: when the client's clock was at At,
// the server's clock was at Is, or later. The zero value is no bound.
type ServerTime struct {
	At time.Time // when the answer was received
	Is locktable.Instant
}

const (
	// replaceAfter is the age from which any answer replaces the known time.
	replaceAfter = 15 * time.Second

	// leastGainMicros is the gain by which a newer answer must exceed the known time.
	leastGainMicros = 100
)

// By is a lower bound of the server's clock at a moment of the client's clock. Two clocks
// never run at the same speed, so By subtracts a thousandth of the time since At.
func (s ServerTime) By(t time.Time) locktable.Instant {
	passed := t.Sub(s.At)
	off := passed / 1000
	return s.Is + locktable.Instant((passed-max(off, -off))/time.Microsecond)
}

// Outdated reports whether an answer that was received now replaces the known time. The
// server stated the time `is`, in whole ticks, in answer to a request sent at `sent`.
//
// An answer that is too early for its request comes from another server, or from a clock
// that was set back. Other answers replace a known time that is earlier or too old.
func (s ServerTime) Outdated(is locktable.Instant, tick time.Duration, sent, now time.Time) bool {
	return is.Add(tick) < s.By(sent) || is > s.By(now)+leastGainMicros || now.Sub(s.At) > replaceAfter
}
