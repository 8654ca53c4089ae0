package engine

import (
	"time"

	"github.com/pawl-go/pawl/driver"
)

// due computes the time of the next poll. A poll serves all waiting claims, which may be
// thousands. So next looks at all of them only once after each poll, and add then at each
// claim that may be due sooner.
type due struct {
	pace     Pace // nil before the first call of next
	polledAt time.Time
	first    time.Time
}

// next returns the time of the next poll of a Poller that polled last at polledAt. The
// time may be too early, because the claim that determined it is due later by now, or no
// longer waits.
func (d *due) next(waiting map[driver.Token]*Claim, polledAt time.Time, pace Pace) time.Time {
	if d.pace == nil || !polledAt.Equal(d.polledAt) {
		*d = due{pace: pace, polledAt: polledAt}
		for _, x := range waiting {
			d.add(x)
		}
	}
	return d.first
}

// add adds a waiting claim that may be due sooner than before.
func (d *due) add(x *Claim) {
	if d.pace == nil {
		return
	}
	from := d.polledAt
	if x.changedAt.After(from) {
		from = x.changedAt
	}
	if t := from.Add(d.pace(from.Sub(x.changedAt), x.ahead)); d.first.IsZero() || t.Before(d.first) {
		d.first = t
	}
}
