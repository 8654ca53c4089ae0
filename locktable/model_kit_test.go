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

// A model says the rules of docs/internals/design.md, section 5, a second time, as
// plainly as can be and with no eye to speed: a diary of everything that was ever
// claimed, from which nothing is deleted, read from its first page for every answer. It
// shares no code with the entry.
type model struct {
	diary []*story // in the order of arrival
	fence uint64
	value []byte
	wrote uint64              // the fence under which that was written
	shut  []locktable.Instant // until when the name was closed, once for each reason
	sent  []string            // by the op at hand

	sooner bool // the head of the queue is another one, or the name opens sooner than the head knows
}

// A story is the history of one claim.
type story struct {
	driver.Claim
	stage    string // "waits", "holds", "kept", "over"
	place    locktable.Instant
	came     locktable.Instant // when it joined the queue, or as if
	since    locktable.Instant
	until    locktable.Instant
	fence    uint64
	run      int
	brokenBy driver.Owner
	word     bool // brokenBy is still remembered
	broken   int  // the number of this break, from 1
}

// in returns the stories at a stage; holders come in the order of their fences.
func (m *model) in(stages ...string) (out []*story) {
	for _, s := range m.diary {
		if slices.Contains(stages, s.stage) {
			out = append(out, s)
		}
	}
	if stages[0] == "waits" {
		slices.SortStableFunc(out, func(a, b *story) int { return cmp.Compare(a.came, b.came) })
	}
	if stages[0] == "holds" {
		slices.SortStableFunc(out, func(a, b *story) int { return cmp.Compare(a.fence, b.fence) })
	}
	return out
}

// of is the story of a token at a stage.
func (m *model) of(token driver.Token, stage string) *story {
	for _, s := range m.in(stage) {
		if s.Token == token {
			return s
		}
	}
	return nil
}

func (m *model) shutUntil(now locktable.Instant) time.Duration {
	return max(0, now.Until(slices.Max(append(m.shut, now))))
}

func (m *model) room(now locktable.Instant, c driver.Claim) bool {
	sum := int64(c.Weight)
	for _, s := range m.in("holds", "kept") {
		sum += int64(s.Weight)
	}
	return sum <= int64(c.Limit) && m.shutUntil(now) == 0
}

// tick lets go what is over, and then lets the queue in.
func (m *model) tick(now locktable.Instant) {
	for _, s := range m.diary {
		if (s.stage == "holds" || s.stage == "kept") && s.until <= now {
			if s.stage == "holds" && s.LockDelay > 0 {
				m.shut = append(m.shut, s.until.Add(s.LockDelay))
			}
			s.stage = "over"
		}
		if s.stage == "waits" && s.place <= now {
			s.stage, m.sooner = "over", true
		}
		if s.word && s.until <= now {
			s.word = false
		}
	}
	m.shut = slices.DeleteFunc(m.shut, func(i locktable.Instant) bool { return i <= now })
	m.letIn(now)
}

func (m *model) letIn(now locktable.Instant) {
	for _, s := range m.in("waits") {
		if !m.room(now, s.Claim) {
			return
		}
		m.sooner = true
		if m.valueNotBelow(s.ValueBelow) {
			s.stage = "over"
			m.sent = append(m.sent, fmt.Sprintf("; signal %d to %s, fence 0, run 0", driver.SignalRetry, s.Owner.Client))
			continue
		}
		m.grant(now, s, s.place, 0)
		m.sent = append(m.sent, fmt.Sprintf("; signal %d to %s, fence %d, run %d", driver.SignalGranted, s.Owner.Client, s.fence, s.run))
	}
}

func (m *model) grant(now locktable.Instant, s *story, until locktable.Instant, wish uint64) {
	s.stage, s.since, s.until, s.run = "holds", now, until, 1
	if s.Weight == driver.Exclusive && s.Fences > 1 {
		s.run = s.Fences
	}
	s.fence = max(m.fence+1, uint64(now), min(wish, uint64(now.Add(driver.MaxLead))))
	m.fence = s.fence + uint64(s.run) - 1
	m.write(s, s.Value)
}

func (m *model) write(by *story, value []byte) {
	if value != nil {
		m.value, m.wrote = value, by.fence
	}
}

func (m *model) valueNotBelow(v []byte) bool {
	return v != nil && m.value != nil && string(m.value) >= string(v)
}

func (m *model) breakIt(s *story, by driver.Owner) {
	if s.stage == "holds" {
		m.sent = append(m.sent, fmt.Sprintf("; signal %d to %s, fence 0, run 0", driver.SignalLost, s.Owner.Client))
		s.brokenBy, s.word, s.broken = by, true, len(m.diary)+1
		for _, o := range m.diary {
			s.broken = max(s.broken, o.broken+1)
		}
	}
	s.stage = "over"
}

func (m *model) do(now locktable.Instant, o op) string {
	if o.what == "sleep" || o.what == "forget" {
		return ""
	}
	m.sent, m.sooner = nil, false
	m.tick(now)
	answer := map[string]func(locktable.Instant, op) string{
		"acquire": m.acquire, "renew": m.renew, "release": m.release, "break": m.breakFence,
	}[o.what](now, o)
	m.letIn(now)
	opens := m.shutUntil(now) > 0 || len(m.in("kept")) > 0
	if queue := m.in("waits"); m.sooner && opens && len(queue) > 0 {
		m.sent = append(m.sent, fmt.Sprintf("; signal %d to %s, fence 0, run 0", driver.SignalRetry, queue[0].Owner.Client))
	}
	return answer + strings.Join(m.sent, "")
}

func (m *model) acquire(now locktable.Instant, o op) string {
	c := o.claim
	if s := m.of(c.Token, "holds"); s != nil {
		s.until, s.TTL = max(s.until, now.Add(c.TTL)), c.TTL
		return answerOf(driver.Grant{Fence: s.fence, Fences: s.run, TTL: c.TTL}, nil)
	}
	waiting := m.of(c.Token, "waits")
	if m.valueNotBelow(c.ValueBelow) {
		if waiting != nil {
			m.quits(waiting)
		}
		return answerOf(driver.Grant{}, &driver.ValueNotBelowError{Value: m.value, Fence: m.wrote})
	}
	if c.Force && waiting != nil {
		m.quits(waiting)
	}
	if c.Force {
		for _, s := range m.in("holds", "kept") {
			m.breakIt(s, c.Owner)
		}
		m.shut = nil
	}
	came := m.cameAt(now, c)
	first := !slices.ContainsFunc(m.in("waits"), func(s *story) bool { return !c.Queue || s.came <= came })
	if c.Force || waiting == nil && first && m.room(now, c) {
		s := &story{Claim: c}
		m.diary = append(m.diary, s)
		m.grant(now, s, now.Add(c.TTL), c.MinFence)
		return answerOf(driver.Grant{Fence: s.fence, Fences: s.run, TTL: c.TTL}, nil)
	}
	if c.Queue && waiting == nil {
		waiting = &story{Claim: c, stage: "waits", came: came}
		m.diary = append(m.diary, waiting)
	}
	if c.Queue {
		waiting.place, waiting.Fences = max(waiting.place, now.Add(c.QueueTTL)), c.Fences
		waiting.Value, waiting.ValueBelow, waiting.TTL = c.Value, c.ValueBelow, c.TTL
	}
	var delay time.Duration // of the one whose lease ends first
	held := &driver.HeldError{
		Position: 1 + slices.Index(m.in("waits"), waiting), Fence: m.fence, ClosedFor: m.shutUntil(now),
	}
	if held.Position == 1 {
		m.sooner = false // this answer says when it opens
	}
	for _, s := range m.in("holds", "kept") {
		left, its := now.Until(s.until), s.LockDelay
		if s.stage == "kept" {
			its = 0
		}
		if held.Holders++; held.Holders > 1 && (left > held.Holder.ExpiresIn || left == held.Holder.ExpiresIn && its <= delay) {
			continue
		}
		delay, held.Holder = its, driver.Holder{
			Owner: s.Owner, Fence: s.fence, Permits: s.Weight, Limit: s.Limit, TTL: s.TTL, ExpiresIn: left, Released: s.stage == "kept",
		}
	}
	return answerOf(driver.Grant{}, held)
}

// quits takes a waiter out of the queue.
func (m *model) quits(s *story) {
	m.sooner = m.sooner || m.in("waits")[0] == s
	s.stage = "over"
}

// cameAt returns the time at which a claim joins the queue: not before the waiters that
// are there, unless its ticket is older.
func (m *model) cameAt(now locktable.Instant, c driver.Claim) locktable.Instant {
	came := now
	for _, s := range m.in("waits") {
		came = max(came, s.came)
	}
	if c.Ticket == 0 {
		return came
	}
	earliest := came - locktable.Instant(driver.MaxLead.Microseconds())
	return max(earliest, min(came, locktable.Instant(c.Ticket)))
}

func (m *model) gone(now locktable.Instant, token driver.Token) string {
	var last *story
	for _, s := range m.diary {
		if s.Token == token && s.word && (last == nil || s.broken > last.broken) {
			last = s
		}
	}
	if last == nil {
		return said(driver.ErrNoSuchLease)
	}
	return said(&driver.BrokenError{By: last.brokenBy, ClosedFor: m.shutUntil(now)})
}

func (m *model) renew(now locktable.Instant, o op) string {
	if s := m.of(o.claim.Token, "holds"); s != nil {
		s.until, s.TTL = max(s.until, now.Add(o.d)), o.d
		m.write(s, o.claim.Value)
		return said(nil)
	}
	return m.gone(now, o.claim.Token)
}

func (m *model) release(now locktable.Instant, o op) string {
	if s := m.of(o.claim.Token, "waits"); s != nil {
		m.quits(s)
		return said(nil)
	}
	s := m.of(o.claim.Token, "holds")
	if s == nil {
		return m.gone(now, o.claim.Token)
	}
	m.write(s, o.claim.Value)
	s.stage, s.until = "kept", s.since.Add(o.d)
	if now < s.since { // the clock ran back, and "after the grant" is later than it should be
		s.until = now.Add(o.d)
	}
	if s.until <= now {
		s.stage = "over"
	}
	m.sooner = m.sooner || s.stage == "kept"
	return said(nil)
}

func (m *model) breakFence(now locktable.Instant, o op) string {
	for _, s := range m.in("holds", "kept") {
		for i := range s.run {
			if s.fence+uint64(i) == o.fence {
				m.breakIt(s, driver.Owner{Client: "boss"})
				if o.d > 0 {
					m.shut, m.sooner = append(m.shut, now.Add(o.d)), true
				}
				return said(nil)
			}
		}
	}
	return said(driver.ErrNoSuchLease)
}

// entry returns the entry that Inspect has to show.
func (m *model) entry(now locktable.Instant) driver.Entry {
	e := driver.Entry{Name: "job", Fence: m.fence, ClosedFor: m.shutUntil(now), Holders: []driver.Holder{}, Value: m.value, ValueFence: m.wrote}
	for _, s := range m.in("holds", "kept") {
		e.Holders = append(e.Holders, driver.Holder{
			Fence: s.fence, Permits: s.Weight, Limit: s.Limit, Owner: s.Owner, Since: s.since.Time(), TTL: s.TTL, ExpiresIn: now.Until(s.until),
			Released: s.stage == "kept",
		})
	}
	for _, s := range m.in("waits") {
		e.Waiters = append(e.Waiters, driver.Waiter{
			Permits: s.Weight, Limit: s.Limit, Owner: s.Owner, Since: s.came.Time(), ExpiresIn: now.Until(s.place),
		})
	}
	return e
}
