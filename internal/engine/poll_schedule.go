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
func (s *pollSchedule) next(waiting map[driver.Token]*Claim, polledAt time.Time, pace Pace) time.Time {
	if s.pace == nil || !polledAt.Equal(s.polledAt) {
		*s = pollSchedule{pace: pace, polledAt: polledAt}
		for _, claim := range waiting {
			s.add(claim)
		}
	}
	return s.firstDue
}

// add adds a waiting claim that may be due sooner than before.
func (s *pollSchedule) add(claim *Claim) {
	if s.pace == nil {
		return
	}
	from := s.polledAt
	if claim.changedAt.After(from) {
		from = claim.changedAt
	}
	if t := from.Add(s.pace(from.Sub(claim.changedAt), claim.ahead)); s.firstDue.IsZero() || t.Before(s.firstDue) {
		s.firstDue = t
	}
}
