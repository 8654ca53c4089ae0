package sim

import (
	"fmt"
	"time"
)

// weather is how the network is, on all roads.
type weather struct {
	low, high time.Duration // a message takes so long, each way
	slow      int           // so many in a hundred take up to slowest
	slowest   time.Duration
	lost      int // so many in a hundred never arrive, each way
	reset     int // so many in a hundred requests end with an error: before they arrived, or after
	mute      int // so many signals in a hundred are lost
	echo      int // so many are heard again
}

func (w weather) String() string {
	return fmt.Sprintf("messages that take %v to %v (%d %% up to %v), of which %d %% are lost, %d %% with a reset; of signals %d %%, and %d %% are heard twice",
		w.low, w.high, w.slow, w.slowest, w.lost, w.reset, w.mute, w.echo)
}

// fate is what becomes of one request and its answer.
type fate struct {
	out, back time.Duration
	lostOut   bool
	lostBack  bool
	reset     bool // the sender hears of it when it is lost
}

func (w *weather) travel(d *dice) time.Duration {
	if d.chance(w.slow) {
		return d.between(w.high, w.slowest)
	}
	return d.between(w.low, w.high)
}

func (w *weather) fate(d *dice) fate {
	f := fate{out: w.travel(d), back: w.travel(d)}
	switch {
	case d.chance(w.reset):
		f.reset = true
		f.lostOut = d.chance(50)
		f.lostBack = !f.lostOut
	default:
		f.lostOut, f.lostBack = d.chance(w.lost), d.chance(w.lost)
	}
	return f
}

// Four sorts of weather. unit is the TTL that is most used; a request has a sixth of it.
func calm() weather { return weather{low: 50 * time.Microsecond, high: time.Millisecond} }

func wide(unit time.Duration) weather {
	return weather{low: time.Millisecond, high: min(20*time.Millisecond, unit/50)}
}

func rough(unit time.Duration) weather {
	return weather{
		low: 100 * time.Microsecond, high: unit / 100, slow: 5, slowest: unit / 2, lost: 3, reset: 2, mute: 10, echo: 10,
	}
}

func foul(unit time.Duration) weather {
	return weather{
		low: 100 * time.Microsecond, high: unit / 50, slow: 20, slowest: 2 * unit, lost: 12, reset: 8, mute: 40, echo: 30,
	}
}
