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
	for _, claim := range m.claims {
		if slices.Contains(stages, claim.stage) {
			out = append(out, claim)
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
	for _, claim := range m.atStage(stage) {
		if claim.Token == token {
			return claim
		}
	}
	return nil
}

func (m *model) closedFor(now locktable.Instant) time.Duration {
	return max(0, now.Until(slices.Max(append(m.closedUntil, now))))
}

func (m *model) fits(now locktable.Instant, c driver.Claim) bool {
	sum := int64(c.Weight)
	for _, claim := range m.atStage("holds", "kept") {
		sum += int64(claim.Weight)
	}
	return sum <= int64(c.Limit) && m.closedFor(now) == 0
}

// settle ends expired leases and places, and then grants to the queue.
func (m *model) settle(now locktable.Instant) {
	for _, claim := range m.claims {
		if (claim.stage == "holds" || claim.stage == "kept") && claim.until <= now {
			if claim.stage == "holds" && claim.LockDelay > 0 {
				m.closedUntil = append(m.closedUntil, claim.until.Add(claim.LockDelay))
			}
			claim.stage = "over"
		}
		if claim.stage == "waits" && claim.placeEnd <= now {
			claim.stage, m.headMustAsk = "over", true
		}
		if claim.brokenIsKnown && claim.until <= now {
			claim.brokenIsKnown = false
		}
	}
	m.closedUntil = slices.DeleteFunc(m.closedUntil, func(i locktable.Instant) bool { return i <= now })
	m.promote(now)
}

func (m *model) promote(now locktable.Instant) {
	for _, claim := range m.atStage("waits") {
		if !m.fits(now, claim.Claim) {
			return
		}
		m.headMustAsk = true
		if m.valueNotBelow(claim.ValueBelow) {
			claim.stage = "over"
			m.sent = append(m.sent, fmt.Sprintf("; signal %d to %s, fence 0, run 0", driver.SignalRetry, claim.Owner.Client))
			continue
		}
		m.grant(now, claim, claim.placeEnd, 0)
		m.sent = append(m.sent, fmt.Sprintf("; signal %d to %s, fence %d, run %d", driver.SignalGranted, claim.Owner.Client, claim.fence, claim.fences))
	}
}

func (m *model) grant(now locktable.Instant, claim *modelClaim, until locktable.Instant, minFence uint64) {
	claim.stage, claim.since, claim.until, claim.fences = "holds", now, until, 1
	if claim.Weight == driver.Exclusive && claim.Fences > 1 {
		claim.fences = claim.Fences
	}
	claim.fence = max(m.fence+1, uint64(now), min(minFence, uint64(now.Add(driver.MaxLead))))
	m.fence = claim.fence + uint64(claim.fences) - 1
	m.write(claim, claim.Value)
}

func (m *model) write(by *modelClaim, value []byte) {
	if value != nil {
		m.value, m.valueFence = value, by.fence
	}
}

func (m *model) valueNotBelow(v []byte) bool {
	return v != nil && m.value != nil && string(m.value) >= string(v)
}

func (m *model) breakLease(claim *modelClaim, by driver.Owner) {
	if claim.stage == "holds" {
		m.sent = append(m.sent, fmt.Sprintf("; signal %d to %s, fence 0, run 0", driver.SignalLost, claim.Owner.Client))
		claim.brokenBy, claim.brokenIsKnown, claim.broken = by, true, len(m.claims)+1
		for _, o := range m.claims {
			claim.broken = max(claim.broken, o.broken+1)
		}
	}
	claim.stage = "over"
}

func (m *model) do(now locktable.Instant, o op) string {
	if o.kind == "sleep" || o.kind == "forget" {
		return ""
	}
	m.sent, m.headMustAsk = nil, false
	m.settle(now)
	answer := map[string]func(locktable.Instant, op) string{
		"acquire": m.acquire, "renew": m.renew, "release": m.release, "break": m.breakFence,
	}[o.kind](now, o)
	m.promote(now)
	opens := m.closedFor(now) > 0 || len(m.atStage("kept")) > 0
	if queue := m.atStage("waits"); m.headMustAsk && opens && len(queue) > 0 {
		m.sent = append(m.sent, fmt.Sprintf("; signal %d to %s, fence 0, run 0", driver.SignalRetry, queue[0].Owner.Client))
	}
	return answer + strings.Join(m.sent, "")
}

func (m *model) acquire(now locktable.Instant, o op) string {
	c := o.claim
	if claim := m.claimOf(c.Token, "holds"); claim != nil {
		claim.until, claim.TTL = max(claim.until, now.Add(c.TTL)), c.TTL
		return answerText(driver.Grant{Fence: claim.fence, Fences: claim.fences, TTL: c.TTL}, nil)
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
		for _, claim := range m.atStage("holds", "kept") {
			m.breakLease(claim, c.Owner)
		}
		m.closedUntil = nil
	}
	arrived := m.arrivalTime(now, c)
	first := !slices.ContainsFunc(m.atStage("waits"), func(claim *modelClaim) bool { return !c.Queue || claim.arrived <= arrived })
	if c.Force || waiting == nil && first && m.fits(now, c) {
		claim := &modelClaim{Claim: c}
		m.claims = append(m.claims, claim)
		m.grant(now, claim, now.Add(c.TTL), c.MinFence)
		return answerText(driver.Grant{Fence: claim.fence, Fences: claim.fences, TTL: c.TTL}, nil)
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
	for _, claim := range m.atStage("holds", "kept") {
		left, lockDelay := now.Until(claim.until), claim.LockDelay
		if claim.stage == "kept" {
			lockDelay = 0
		}
		if held.Holders++; held.Holders > 1 && (left > held.Holder.ExpiresIn || left == held.Holder.ExpiresIn && lockDelay <= delay) {
			continue
		}
		delay, held.Holder = lockDelay, driver.Holder{
			Owner: claim.Owner, Fence: claim.fence, Permits: claim.Weight, Limit: claim.Limit, TTL: claim.TTL, ExpiresIn: left, Released: claim.stage == "kept",
		}
	}
	return answerText(driver.Grant{}, held)
}

// leaveQueue removes a waiter from the queue.
func (m *model) leaveQueue(claim *modelClaim) {
	m.headMustAsk = m.headMustAsk || m.atStage("waits")[0] == claim
	claim.stage = "over"
}

// arrivalTime returns the time at which a claim joins the queue: not before the present
// waiters, unless its ticket is older.
func (m *model) arrivalTime(now locktable.Instant, c driver.Claim) locktable.Instant {
	arrived := now
	for _, claim := range m.atStage("waits") {
		arrived = max(arrived, claim.arrived)
	}
	if c.Ticket == 0 {
		return arrived
	}
	earliest := arrived - locktable.Instant(driver.MaxLead.Microseconds())
	return max(earliest, min(arrived, locktable.Instant(c.Ticket)))
}

func (m *model) noLease(now locktable.Instant, token driver.Token) string {
	var last *modelClaim
	for _, claim := range m.claims {
		if claim.Token == token && claim.brokenIsKnown && (last == nil || claim.broken > last.broken) {
			last = claim
		}
	}
	if last == nil {
		return errText(driver.ErrNoSuchLease)
	}
	return errText(&driver.BrokenError{By: last.brokenBy, ClosedFor: m.closedFor(now)})
}

func (m *model) renew(now locktable.Instant, o op) string {
	if claim := m.claimOf(o.claim.Token, "holds"); claim != nil {
		claim.until, claim.TTL = max(claim.until, now.Add(o.duration)), o.duration
		m.write(claim, o.claim.Value)
		return errText(nil)
	}
	return m.noLease(now, o.claim.Token)
}

func (m *model) release(now locktable.Instant, o op) string {
	if claim := m.claimOf(o.claim.Token, "waits"); claim != nil {
		m.leaveQueue(claim)
		return errText(nil)
	}
	claim := m.claimOf(o.claim.Token, "holds")
	if claim == nil {
		return m.noLease(now, o.claim.Token)
	}
	m.write(claim, o.claim.Value)
	claim.stage, claim.until = "kept", claim.since.Add(o.duration)
	if now < claim.since { // the clock ran back, so MinHold counts from now
		claim.until = now.Add(o.duration)
	}
	if claim.until <= now {
		claim.stage = "over"
	}
	m.headMustAsk = m.headMustAsk || claim.stage == "kept"
	return errText(nil)
}

func (m *model) breakFence(now locktable.Instant, o op) string {
	for _, claim := range m.atStage("holds", "kept") {
		for i := range claim.fences {
			if claim.fence+uint64(i) == o.fence {
				m.breakLease(claim, driver.Owner{Client: "boss"})
				if o.duration > 0 {
					m.closedUntil, m.headMustAsk = append(m.closedUntil, now.Add(o.duration)), true
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
	for _, claim := range m.atStage("holds", "kept") {
		e.Holders = append(e.Holders, driver.Holder{
			Fence: claim.fence, Permits: claim.Weight, Limit: claim.Limit, Owner: claim.Owner, Since: claim.since.Time(), TTL: claim.TTL, ExpiresIn: now.Until(claim.until),
			Released: claim.stage == "kept",
		})
	}
	for _, claim := range m.atStage("waits") {
		e.Waiters = append(e.Waiters, driver.Waiter{
			Permits: claim.Weight, Limit: claim.Limit, Owner: claim.Owner, Since: claim.arrived.Time(), ExpiresIn: now.Until(claim.placeEnd),
		})
	}
	return e
}
