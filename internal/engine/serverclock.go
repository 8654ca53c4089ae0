package engine

import (
	"time"

	"github.com/pawl-go/pawl/locktable"
)

// ServerTime gives a lower bound of the server's clock: when the client's clock showed
// Client, the server's clock showed Server or later. The zero value is no bound.
type ServerTime struct {
	Client time.Time // when the answer was received
	Server locktable.Instant
}

const (
	// replaceAfter is the age of the known ServerTime at which any answer replaces it.
	replaceAfter = 15 * time.Second

	// minGainMicros is the least improvement of the bound for which an answer replaces
	// the known ServerTime.
	minGainMicros = 100
)

// LowerBound returns a lower bound of the server's clock at the time t of the client's
// clock. The two clocks may drift, so it subtracts a thousandth of the time since Client.
func (s ServerTime) LowerBound(t time.Time) locktable.Instant {
	passed := t.Sub(s.Client)
	drift := passed / 1000
	return s.Server + locktable.Instant((passed-max(drift, -drift))/time.Microsecond)
}

// Outdated reports whether an answer replaces s. server is the time in the answer, in
// whole ticks. The client sent the request at the time sent, and received the answer at
// the time now.
//
// An answer replaces s if it is a better bound, if s is too old, or if its time is less
// than the bound at the time sent: then another server has answered, or the server's
// clock was set back.
func (s ServerTime) Outdated(server locktable.Instant, tick time.Duration, sent, now time.Time) bool {
	return server.Add(tick) < s.LowerBound(sent) || server > s.LowerBound(now)+minGainMicros || now.Sub(s.Client) > replaceAfter
}
