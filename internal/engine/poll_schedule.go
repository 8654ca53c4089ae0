package engine

import (
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A pollSchedule computes the time of the next poll. A poll serves all waiting claims,
// which may be thousands. So next visits all of them only once after each poll. Then add
// visits each claim that may be due sooner.
type pollSchedule struct {
	pace     Pace // nil before the first call of next
	polledAt time.Time
	firstDue time.Time // when the first waiting claim is due; zero if none waits
}

// next returns the time of the next poll of a Poller that polled last at polledAt. The
// time may be too early, because the claim that determined it is due later by now, or no
// longer waits.
func (d *pollSchedule) next(waiting map[driver.Token]*Claim, polledAt time.Time, pace Pace) time.Time {
	if d.pace == nil || !polledAt.Equal(d.polledAt) {
		*d = pollSchedule{pace: pace, polledAt: polledAt}
		for _, claim := range waiting {
			d.add(claim)
		}
	}
	return d.firstDue
}

// add adds a waiting claim that may be due sooner than before.
func (d *pollSchedule) add(claim *Claim) {
	if d.pace == nil {
		return
	}
	from := d.polledAt
	if claim.changedAt.After(from) {
		from = claim.changedAt
	}
	if t := from.Add(d.pace(from.Sub(claim.changedAt), claim.ahead)); d.firstDue.IsZero() || t.Before(d.firstDue) {
		d.firstDue = t
	}
}
