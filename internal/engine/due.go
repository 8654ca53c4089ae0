package engine

import (
	"time"

	"github.com/pawl-go/pawl/driver"
)

// due computes the time of the next poll. A poll serves all waiting claims, which may be
// thousands. So due computes the time from all of them only once after each poll, and
// then from the claims that have changed since.
type due struct {
	polledAt time.Time // the poll after which first was computed
	first    time.Time
	changed  []*Claim // claims that may be due before first
}

// maxChanged bounds due.changed, because a client without a Poller never empties it.
// After more changes, next computes the time from all claims again.
const maxChanged = 64

// add adds a claim that may be due sooner than before.
func (d *due) add(x *Claim) {
	if len(d.changed) == maxChanged {
		d.polledAt, d.changed = time.Time{}, d.changed[:0]
	}
	d.changed = append(d.changed, x)
}

// next returns the time of the next poll of a Poller that polled last at last. The time
// is too early if the claim that determined it is due later by now, or no longer waits.
func (d *due) next(waits map[driver.Token]*Claim, last time.Time, pace Pace) time.Time {
	count := func(x *Claim) {
		from := last
		if x.changedAt.After(from) {
			from = x.changedAt
		}
		if t := from.Add(pace(from.Sub(x.changedAt), x.ahead)); d.first.IsZero() || t.Before(d.first) {
			d.first = t
		}
	}
	if !last.Equal(d.polledAt) {
		d.polledAt, d.first = last, time.Time{}
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
