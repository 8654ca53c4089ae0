package locktable_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// A model implements the rules of docs/internals/design.md, section 5, a second time, as
// plainly as possible and without regard to speed. It keeps all claims for ever, and goes
// through them for each answer. It shares no code with Entry.
type model struct {
	claims      []*modelClaim // in the order of arrival
	fence       uint64
	value       []byte
	valueFence  uint64              // the fence of the lease that wrote the value
	closedUntil []locktable.Instant // the ends of all reasons for which the name is closed
	sent        []string            // the signals of the current op

	headMustAsk bool // the head of the queue is new, or the name opens sooner than the head knows
}

// A modelClaim is the history of one claim.
type modelClaim struct {
	driver.Claim
	stage    string // "waits", "holds", "kept" (released within its minimum hold), "over"
	placeEnd locktable.Instant
	arrived  locktable.Instant // when it joined the queue, or its ticket
	since    locktable.Instant
	until    locktable.Instant
	fence    uint64
	fences   int
	brokenBy driver.Owner

	brokenIsKnown bool // brokenBy is still remembered
	broken        int  // the number of this break, from 1
}

// atStage returns the claims at a stage; holders come in the order of their fences.
func (m *model) atStage(stages ...string) (out []*modelClaim) {
	for _, s := range m.claims {
		if slices.Contains(stages, s.stage) {
			out = append(out, s)
		}
	}
	if stages[0] == "waits" {
		slices.SortStableFunc(out, func(a, b *modelClaim) int { return cmp.Compare(a.arrived, b.arrived) })
	}
	if stages[0] == "holds" {
		slices.SortStableFunc(out, func(a, b *modelClaim) int { return cmp.Compare(a.fence, b.fence) })
	}
	return out
}

// claimOf returns the claim of a token at a stage.
func (m *model) claimOf(token driver.Token, stage string) *modelClaim {
	for _, s := range m.atStage(stage) {
		if s.Token == token {
			return s
		}
	}
	return nil
}

func (m *model) closedFor(now locktable.Instant) time.Duration {
	return max(0, now.Until(slices.Max(append(m.closedUntil, now))))
}

func (m *model) fits(now locktable.Instant, c driver.Claim) bool {
	sum := int64(c.Weight)
	for _, s := range m.atStage("holds", "kept") {
		sum += int64(s.Weight)
	}
	return sum <= int64(c.Limit) && m.closedFor(now) == 0
}

// settle ends expired leases and places, and then grants to the queue.
func (m *model) settle(now locktable.Instant) {
	for _, s := range m.claims {
		if (s.stage == "holds" || s.stage == "kept") && s.until <= now {
			if s.stage == "holds" && s.LockDelay > 0 {
				m.closedUntil = append(m.closedUntil, s.until.Add(s.LockDelay))
			}
			s.stage = "over"
		}
		if s.stage == "waits" && s.placeEnd <= now {
			s.stage, m.headMustAsk = "over", true
		}
		if s.brokenIsKnown && s.until <= now {
			s.brokenIsKnown = false
		}
	}
	m.closedUntil = slices.DeleteFunc(m.closedUntil, func(i locktable.Instant) bool { return i <= now })
	m.promote(now)
}

func (m *model) promote(now locktable.Instant) {
	for _, s := range m.atStage("waits") {
		if !m.fits(now, s.Claim) {
			return
		}
		m.headMustAsk = true
		if m.valueNotBelow(s.ValueBelow) {
			s.stage = "over"
			m.sent = append(m.sent, fmt.Sprintf("; signal %d to %s, fence 0, run 0", driver.SignalRetry, s.Owner.Client))
			continue
		}
		m.grant(now, s, s.placeEnd, 0)
		m.sent = append(m.sent, fmt.Sprintf("; signal %d to %s, fence %d, run %d", driver.SignalGranted, s.Owner.Client, s.fence, s.fences))
	}
}

func (m *model) grant(now locktable.Instant, s *modelClaim, until locktable.Instant, minFence uint64) {
	s.stage, s.since, s.until, s.fences = "holds", now, until, 1
	if s.Weight == driver.Exclusive && s.Fences > 1 {
		s.fences = s.Fences
	}
	s.fence = max(m.fence+1, uint64(now), min(minFence, uint64(now.Add(driver.MaxLead))))
	m.fence = s.fence + uint64(s.fences) - 1
	m.write(s, s.Value)
}

func (m *model) write(by *modelClaim, value []byte) {
	if value != nil {
		m.value, m.valueFence = value, by.fence
	}
}

func (m *model) valueNotBelow(v []byte) bool {
	return v != nil && m.value != nil && string(m.value) >= string(v)
}

func (m *model) breakLease(s *modelClaim, by driver.Owner) {
	if s.stage == "holds" {
		m.sent = append(m.sent, fmt.Sprintf("; signal %d to %s, fence 0, run 0", driver.SignalLost, s.Owner.Client))
		s.brokenBy, s.brokenIsKnown, s.broken = by, true, len(m.claims)+1
		for _, o := range m.claims {
			s.broken = max(s.broken, o.broken+1)
		}
	}
	s.stage = "over"
}

func (m *model) do(now locktable.Instant, o op) string {
	if o.what == "sleep" || o.what == "forget" {
		return ""
	}
	m.sent, m.headMustAsk = nil, false
	m.settle(now)
	answer := map[string]func(locktable.Instant, op) string{
		"acquire": m.acquire, "renew": m.renew, "release": m.release, "break": m.breakFence,
	}[o.what](now, o)
	m.promote(now)
	opens := m.closedFor(now) > 0 || len(m.atStage("kept")) > 0
	if queue := m.atStage("waits"); m.headMustAsk && opens && len(queue) > 0 {
		m.sent = append(m.sent, fmt.Sprintf("; signal %d to %s, fence 0, run 0", driver.SignalRetry, queue[0].Owner.Client))
	}
	return answer + strings.Join(m.sent, "")
}

func (m *model) acquire(now locktable.Instant, o op) string {
	c := o.claim
	if s := m.claimOf(c.Token, "holds"); s != nil {
		s.until, s.TTL = max(s.until, now.Add(c.TTL)), c.TTL
		return answerText(driver.Grant{Fence: s.fence, Fences: s.fences, TTL: c.TTL}, nil)
	}
	waiting := m.claimOf(c.Token, "waits")
	if m.valueNotBelow(c.ValueBelow) {
		if waiting != nil {
			m.leaveQueue(waiting)
		}
		return answerText(driver.Grant{}, &driver.ValueNotBelowError{Value: m.value, Fence: m.valueFence})
	}
	if c.Force && waiting != nil {
		m.leaveQueue(waiting)
	}
	if c.Force {
		for _, s := range m.atStage("holds", "kept") {
			m.breakLease(s, c.Owner)
		}
		m.closedUntil = nil
	}
	arrived := m.arrivalTime(now, c)
	first := !slices.ContainsFunc(m.atStage("waits"), func(s *modelClaim) bool { return !c.Queue || s.arrived <= arrived })
	if c.Force || waiting == nil && first && m.fits(now, c) {
		s := &modelClaim{Claim: c}
		m.claims = append(m.claims, s)
		m.grant(now, s, now.Add(c.TTL), c.MinFence)
		return answerText(driver.Grant{Fence: s.fence, Fences: s.fences, TTL: c.TTL}, nil)
	}
	if c.Queue && waiting == nil {
		waiting = &modelClaim{Claim: c, stage: "waits", arrived: arrived}
		m.claims = append(m.claims, waiting)
	}
	if c.Queue {
		waiting.placeEnd, waiting.Fences = max(waiting.placeEnd, now.Add(c.QueueTTL)), c.Fences
		waiting.Value, waiting.ValueBelow, waiting.TTL = c.Value, c.ValueBelow, c.TTL
	}
	var delay time.Duration // the lock-delay of held.Holder
	held := &driver.HeldError{
		Position: 1 + slices.Index(m.atStage("waits"), waiting), Fence: m.fence, ClosedFor: m.closedFor(now),
	}
	if held.Position == 1 {
		m.headMustAsk = false // this answer says when the name opens
	}
	for _, s := range m.atStage("holds", "kept") {
		left, lockDelay := now.Until(s.until), s.LockDelay
		if s.stage == "kept" {
			lockDelay = 0
		}
		if held.Holders++; held.Holders > 1 && (left > held.Holder.ExpiresIn || left == held.Holder.ExpiresIn && lockDelay <= delay) {
			continue
		}
		delay, held.Holder = lockDelay, driver.Holder{
			Owner: s.Owner, Fence: s.fence, Permits: s.Weight, Limit: s.Limit, TTL: s.TTL, ExpiresIn: left, Released: s.stage == "kept",
		}
	}
	return answerText(driver.Grant{}, held)
}

// leaveQueue removes a waiter from the queue.
func (m *model) leaveQueue(s *modelClaim) {
	m.headMustAsk = m.headMustAsk || m.atStage("waits")[0] == s
	s.stage = "over"
}

// arrivalTime returns the time at which a claim joins the queue: not before the present
// waiters, unless its ticket is older.
func (m *model) arrivalTime(now locktable.Instant, c driver.Claim) locktable.Instant {
	arrived := now
	for _, s := range m.atStage("waits") {
		arrived = max(arrived, s.arrived)
	}
	if c.Ticket == 0 {
		return arrived
	}
	earliest := arrived - locktable.Instant(driver.MaxLead.Microseconds())
	return max(earliest, min(arrived, locktable.Instant(c.Ticket)))
}

func (m *model) noLease(now locktable.Instant, token driver.Token) string {
	var last *modelClaim
	for _, s := range m.claims {
		if s.Token == token && s.brokenIsKnown && (last == nil || s.broken > last.broken) {
			last = s
		}
	}
	if last == nil {
		return errText(driver.ErrNoSuchLease)
	}
	return errText(&driver.BrokenError{By: last.brokenBy, ClosedFor: m.closedFor(now)})
}

func (m *model) renew(now locktable.Instant, o op) string {
	if s := m.claimOf(o.claim.Token, "holds"); s != nil {
		s.until, s.TTL = max(s.until, now.Add(o.d)), o.d
		m.write(s, o.claim.Value)
		return errText(nil)
	}
	return m.noLease(now, o.claim.Token)
}

func (m *model) release(now locktable.Instant, o op) string {
	if s := m.claimOf(o.claim.Token, "waits"); s != nil {
		m.leaveQueue(s)
		return errText(nil)
	}
	s := m.claimOf(o.claim.Token, "holds")
	if s == nil {
		return m.noLease(now, o.claim.Token)
	}
	m.write(s, o.claim.Value)
	s.stage, s.until = "kept", s.since.Add(o.d)
	if now < s.since { // the clock ran back, so MinHold counts from now
		s.until = now.Add(o.d)
	}
	if s.until <= now {
		s.stage = "over"
	}
	m.headMustAsk = m.headMustAsk || s.stage == "kept"
	return errText(nil)
}

func (m *model) breakFence(now locktable.Instant, o op) string {
	for _, s := range m.atStage("holds", "kept") {
		for i := range s.fences {
			if s.fence+uint64(i) == o.fence {
				m.breakLease(s, driver.Owner{Client: "boss"})
				if o.d > 0 {
					m.closedUntil, m.headMustAsk = append(m.closedUntil, now.Add(o.d)), true
				}
				return errText(nil)
			}
		}
	}
	return errText(driver.ErrNoSuchLease)
}

// entry returns the entry that Inspect must return.
func (m *model) entry(now locktable.Instant) driver.Entry {
	e := driver.Entry{Name: "job", Fence: m.fence, ClosedFor: m.closedFor(now), Holders: []driver.Holder{}, Value: m.value, ValueFence: m.valueFence}
	for _, s := range m.atStage("holds", "kept") {
		e.Holders = append(e.Holders, driver.Holder{
			Fence: s.fence, Permits: s.Weight, Limit: s.Limit, Owner: s.Owner, Since: s.since.Time(), TTL: s.TTL, ExpiresIn: now.Until(s.until),
			Released: s.stage == "kept",
		})
	}
	for _, s := range m.atStage("waits") {
		e.Waiters = append(e.Waiters, driver.Waiter{
			Permits: s.Weight, Limit: s.Limit, Owner: s.Owner, Since: s.arrived.Time(), ExpiresIn: now.Until(s.placeEnd),
		})
	}
	return e
}
