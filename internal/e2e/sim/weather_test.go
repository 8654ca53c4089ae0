package sim

import (
	"fmt"
	"time"
)

// weather is the state of the network, on all links.
type weather struct {
	low, high       time.Duration // the time of a message, each way
	slow            int           // this percentage takes up to slowest
	slowest         time.Duration
	lost            int // this percentage never arrives, each way
	reset           int // this percentage of requests ends with an error, before or after it arrived
	lostSignals     int // this percentage of signals is lost
	repeatedSignals int // this percentage of signals arrives twice
}

func (w weather) String() string {
	return fmt.Sprintf("messages that take %v to %v (%d %% up to %v), of which %d %% are lost, %d %% with a reset; of signals %d %%, and %d %% arrive twice",
		w.low, w.high, w.slow, w.slowest, w.lost, w.reset, w.lostSignals, w.repeatedSignals)
}

// A fate is the fate of one request and its answer: late, lost or reset.
type fate struct {
	outDelay, backDelay time.Duration
	requestLost         bool
	replyLost           bool
	reset               bool // if the message is lost, the sender gets an error
}

func (w *weather) drawDelay(d *dice) time.Duration {
	if d.chance(w.slow) {
		return d.between(w.high, w.slowest)
	}
	return d.between(w.low, w.high)
}

func (w *weather) fate(d *dice) fate {
	f := fate{outDelay: w.drawDelay(d), backDelay: w.drawDelay(d)}
	switch {
	case d.chance(w.reset):
		f.reset = true
		f.requestLost = d.chance(50)
		f.replyLost = !f.requestLost
	default:
		f.requestLost, f.replyLost = d.chance(w.lost), d.chance(w.lost)
	}
	return f
}

// There are four kinds of weather. baseTTL is the most common TTL. A request may take a
// sixth of it.
func calm() weather { return weather{low: 50 * time.Microsecond, high: time.Millisecond} }

func wideArea(baseTTL time.Duration) weather {
	return weather{low: time.Millisecond, high: min(20*time.Millisecond, baseTTL/50)}
}

func rough(baseTTL time.Duration) weather {
	return weather{
		low: 100 * time.Microsecond, high: baseTTL / 100, slow: 5, slowest: baseTTL / 2, lost: 3, reset: 2, lostSignals: 10, repeatedSignals: 10,
	}
}

func foul(baseTTL time.Duration) weather {
	return weather{
		low: 100 * time.Microsecond, high: baseTTL / 50, slow: 20, slowest: 2 * baseTTL, lost: 12, reset: 8, lostSignals: 40, repeatedSignals: 30,
	}
}
