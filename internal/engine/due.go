package engine

import (
	"time"

	"github.com/pawl-go/pawl/driver"
)

// due computes the time of the next look. A look concerns all waiting claims, which may
// be thousands, so due computes the time from all of them only once after each look.
// Until the next look it takes only those claims into account that may be due earlier.
type due struct {
	looked  time.Time // the look after which first was computed
	first   time.Time
	changed []*Claim // claims that may be due before first
}

// mostChanged bounds due.changed, because a client without a Poller never empties it.
// After more changes, next looks at all claims again.
const mostChanged = 64

// sooner notes that a claim may be due sooner than before.
func (d *due) sooner(x *Claim) {
	if len(d.changed) == mostChanged {
		d.looked, d.changed = time.Time{}, d.changed[:0]
	}
	d.changed = append(d.changed, x)
}

// next returns the time of the next look of a Poller that looked last at looked. It may
// be too early, if the claim that was due first is due later by now, or waits no more.
func (d *due) next(waits map[driver.Token]*Claim, looked time.Time, pace Pace) time.Time {
	count := func(x *Claim) {
		from := looked
		if x.moved.After(from) {
			from = x.moved
		}
		if t := from.Add(pace(from.Sub(x.moved), x.ahead)); d.first.IsZero() || t.Before(d.first) {
			d.first = t
		}
	}
	if !looked.Equal(d.looked) {
		d.looked, d.first = looked, time.Time{}
		for _, x := range waits {
			count(x)
		}
	} else {
		for _, x := range d.changed {
			if waits[x.Token] == x {
				count(x)
			}
		}
	}
	clear(d.changed)
	d.changed = d.changed[:0]
	return d.first
}
