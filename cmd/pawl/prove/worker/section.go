package worker

import (
	"cmp"
	"context"
	"os"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// A holding is the hold of an actor in one section: one lease, or the leases of an All.
type holding struct {
	*actor
	claims  []*history.Claim
	leases  []Lease
	wokenAt []int64
}

// section works while it holds the leases, and releases them.
func (a *actor) section(claims []*history.Claim, leases []Lease) {
	for i, c := range claims {
		c.Fence = leases[i].Fence()
		a.send(Message{Open: c})
	}
	s := &holding{actor: a, claims: claims, leases: leases, wokenAt: make([]int64, len(leases))}
	workEnded := make(chan struct{})
	listenEnded := make(chan struct{})
	go s.listen(workEnded, listenEnded)
	s.work()
	close(workEnded)
	<-listenEnded
	s.release()
}

// listen records the time at which the lock wakes its holder up.
func (s *holding) listen(workEnded, listenEnded chan struct{}) {
	defer close(listenEnded)
	for i, l := range s.leases {
		select {
		case <-l.Done():
			s.wokenAt[i] = s.now()
		case <-workEnded:
			select {
			case <-l.Done(): // just now
				s.wokenAt[i] = s.now()
			default:
			}
		}
	}
}

// check asks the lock whether all leases are still held.
func (s *holding) check() (held bool) {
	held = true
	for i, l := range s.leases {
		c := s.claims[i]
		at := s.now()
		if err := l.Err(); err == nil {
			c.Believed = at
		} else {
			if held = false; c.Lost == 0 {
				c.Lost, c.Why = s.now(), err.Error()
			}
		}
	}
	return held
}

// The time between two checks of a holder, and between two Still messages.
const (
	checkInterval = 2 * time.Millisecond
	stillInterval = 50 * time.Millisecond
)

// work is the section: it reads the registers, waits for a while, and writes the numbers
// plus 1. It checks the leases before all writes, not between them. Half of the holders
// write although they know that the lease is over, unless Config.HeedsLoss is set.
func (s *holding) work() {
	writes := make([]*Ask, len(s.claims))
	for i, c := range s.claims {
		if c.Mode == history.Whole {
			writes[i] = s.readRegister(c)
		}
	}
	if s.crash.CompareAndSwap(true, false) {
		s.send(Message{Fault: history.Crash})
		os.Exit(Crashed)
	}
	writesLate := s.overstays || s.chance(50) && !s.HeedsLoss
	lastMessage := s.now()
	for end := s.now() + int64(s.length()); s.now() < end; time.Sleep(checkInterval) {
		if !s.check() && !s.overstays {
			break
		}
		if at := s.now(); at-lastMessage > int64(stillInterval) {
			for _, c := range s.claims {
				s.send(Message{Still: &Still{c.ID, c.Believed}})
			}
			lastMessage = at
		}
	}
	held := s.check()
	if s.overstays && !held {
		s.send(Message{Fault: history.Overstay})
	}
	if held || writesLate {
		for i := range s.claims {
			if writes[i] != nil {
				s.ask(*writes[i])
			}
		}
	}
	s.check()
}

// length returns the duration of a section: mostly some milliseconds, sometimes longer
// than a lease lasts without a renewal.
func (s *holding) length() time.Duration {
	if s.overstays {
		return 2 * s.TTL
	}
	switch p := s.dice.IntN(1000); {
	case p < 2:
		return s.TTL + time.Duration(s.dice.Int64N(int64(s.TTL)))
	case p < 30:
		return time.Duration(s.dice.Int64N(int64(s.TTL) / 4))
	case p < 300:
		return 0
	}
	return time.Duration(s.dice.Int64N(int64(cmp.Or(s.Section, 5*time.Millisecond))))
}

func (s *holding) readRegister(c *history.Claim) *Ask {
	a := s.ask(Ask{Claim: c.ID, Name: c.Name, Fence: c.Fence})
	if a.Stale {
		return nil // a holder with a greater fence has used the register
	}
	return &Ask{Claim: c.ID, Name: c.Name, Fence: c.Fence, Write: true, Read: a.Checked, Plain: a.Plain}
}

func (s *holding) release() {
	at := s.now()
	errs := make([]error, len(s.leases))
	for i, l := range s.leases {
		s.claims[i].Released = at
		errs[i] = l.Release(context.Background())
	}
	freed := s.now()
	for i, c := range s.claims {
		c.Freed, c.Woken = freed, s.wokenAt[i]
		switch {
		case errs[i] == nil:
			c.Release = history.OK
		case s.client.Lost(errs[i]):
			c.Release = history.Late
		default:
			c.Release, c.Error = history.Unknown, errs[i].Error()
		}
		s.send(Message{Line: &history.Line{Claim: c}})
	}
}
