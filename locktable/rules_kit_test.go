package locktable_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/locktable"
)

// noError and must check the errors of steps that a test expects to succeed.
var noError = basictest.NoError

func must[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

// An action describes a step: the method that it runs, and the arguments of the method.
type action struct {
	what        string
	token       driver.Token
	force       bool
	hasTicket   bool // the claim has a ticket
	fence       uint64
	ttl         time.Duration
	value       []byte // the value that it writes
	conditional bool   // the claim has a ValueBelow
}

// step runs one method of the entry, and then checks the rules of
// docs/internals/design.md, section 5.
func (l *fixture) step(a action, f func()) {
	l.t.Helper()
	before := clone(l.e)
	f()
	l.checkState()
	l.checkFences(before)
	l.checkHolders(a, before)
	l.checkQueue(a, before)
	l.checkSignals(a, before)
	l.checkValue(a, before)
	l.checkStored(before)
	l.checkVisible(a, before)
}

func clone(e *locktable.Entry) *locktable.Entry {
	return &locktable.Entry{
		Fence: e.Fence, Closed: e.Closed,
		Holders: slices.Clone(e.Holders), Queue: slices.Clone(e.Queue), Broken: slices.Clone(e.Broken), Value: e.Value,
		Marks: slices.Clone(e.Marks),
	}
}

// checkState checks the rules that hold for every entry after every step.
//
// The rule of exclusion concerns the moment of a grant: held + weight <= limit, each
// claim by its own limit. Later grants are later in the list, and holders that leave only
// make room. So it can be checked at any time: up to and with each holder, the weights
// add up to no more than that holder's limit.
func (l *fixture) checkState() {
	l.t.Helper()
	seen := map[driver.Token]bool{}
	held, last := int64(0), uint64(0)
	for _, h := range l.e.Holders {
		if held += int64(h.Weight); held > int64(h.Limit) {
			l.t.Fatalf("%s has weight %d and limit %d, but the weights up to it add up to %d: %s", tokenName(h.Token), h.Weight, h.Limit, held, entryText(l.e))
		}
		if h.Fence <= last || h.Fences < 1 {
			l.t.Fatalf("a fence of %s (%d, %d in a row) was granted before: %s", tokenName(h.Token), h.Fence, h.Fences, entryText(l.e))
		}
		last = h.Fence + uint64(h.Fences) - 1
		if h.Expires <= l.now {
			l.t.Fatalf("%s expired and still holds", tokenName(h.Token))
		}
		if !h.Token.IsZero() && seen[h.Token] {
			l.t.Fatalf("%s is in the entry twice: %s", tokenName(h.Token), entryText(l.e))
		}
		seen[h.Token] = true
	}
	if last > l.e.Fence {
		l.t.Fatalf("fence %d was granted, but the last fence is %d", last, l.e.Fence)
	}
	for i, w := range l.e.Queue {
		if i > 0 && w.Since < l.e.Queue[i-1].Since {
			l.t.Fatalf("%s arrived before the waiter ahead of it: %s", tokenName(w.Token), entryText(l.e))
		}
		if w.Expires <= l.now {
			l.t.Fatalf("%s still waits in a place that has expired", tokenName(w.Token))
		}
		if w.Token.IsZero() || seen[w.Token] {
			l.t.Fatalf("%s is in the entry twice: %s", tokenName(w.Token), entryText(l.e))
		}
		seen[w.Token] = true
	}
	for _, b := range l.e.Broken {
		if b.Until <= l.now {
			l.t.Fatalf("the break of %s is remembered after its lease would have ended", tokenName(b.Token))
		}
	}
	if len(l.e.Queue) > 0 && l.e.Closed <= l.now {
		if w := l.e.Queue[0]; held+int64(w.Weight) <= int64(w.Limit) {
			l.t.Fatalf("%s is the head of the queue and fits, but waits: %s", tokenName(w.Token), entryText(l.e))
		}
	}
}

// checkFences checks that every new grant has a greater fence than all earlier grants,
// and none below the clock.
func (l *fixture) checkFences(before *locktable.Entry) {
	l.t.Helper()
	if l.e.Fence < before.Fence {
		l.t.Fatalf("the last fence fell from %d to %d", before.Fence, l.e.Fence)
	}
	for _, h := range l.newHolders(before) {
		if h.Fence <= l.lastFence || h.Fence <= before.Fence {
			l.t.Fatalf("%s is granted fence %d after fence %d", tokenName(h.Token), h.Fence, max(l.lastFence, before.Fence))
		}
		if l.now > 0 && h.Fence < uint64(l.now) {
			l.t.Fatalf("%s is granted fence %d, below the clock %d", tokenName(h.Token), h.Fence, l.now)
		}
		if end := l.now.Add(l.e.Uncertainty); h.Since != end {
			l.t.Fatalf("%s holds since %d; want %d, the latest possible time", tokenName(h.Token), h.Since, end)
		}
		l.lastFence = h.Fence + uint64(h.Fences) - 1
	}
}

// newHolders returns the holders that before does not have, in the order of their grants.
func (l *fixture) newHolders(before *locktable.Entry) (out []locktable.Holder) {
	for _, h := range l.e.Holders {
		if !slices.ContainsFunc(before.Holders, func(o locktable.Holder) bool { return o.Fence == h.Fence }) {
			out = append(out, h)
		}
	}
	return out
}

// checkHolders checks that only the lease's token, a break, and the clock change a lease.
func (l *fixture) checkHolders(a action, before *locktable.Entry) {
	l.t.Helper()
	closedUntil := before.Closed
	for _, h := range before.Holders {
		if h.Expires <= l.now {
			if h.LockDelay > 0 {
				closedUntil = max(closedUntil, h.Expires.Add(h.LockDelay))
			}
			continue
		}
		i := slices.IndexFunc(l.e.Holders, func(n locktable.Holder) bool { return n.Fence == h.Fence })
		own := a.token == h.Token && !h.Token.IsZero()
		isBroken := a.what == "break" && h.Fence <= a.fence && a.fence < h.Fence+uint64(h.Fences)
		switch {
		case i < 0:
			if !(own && a.what == "release") && !isBroken && !(a.force && !own) {
				l.t.Fatalf("%s by %s freed the lease of %s", a.what, tokenName(a.token), tokenName(h.Token))
			}
		case own && (a.what == "acquire" || a.what == "renew"):
			if l.e.Holders[i].Expires < h.Expires {
				l.t.Fatalf("%s shortened the lease of %s", a.what, tokenName(h.Token))
			}
			h.Expires, h.TTL = l.e.Holders[i].Expires, a.ttl
			h.Wrote = h.Wrote || a.value != nil && a.what == "renew"
			fallthrough
		case !own:
			if !reflect.DeepEqual(l.e.Holders[i], h) {
				l.t.Fatalf("%s by %s changed the lease %+v to %+v", a.what, tokenName(a.token), h, l.e.Holders[i])
			}
		}
	}
	if closedUntil > l.now && !a.force { // even if this step is the first to notice that holder's expiry
		if n := l.newHolders(before); len(n) > 0 {
			l.t.Fatalf("%s is granted a name that is closed for %v", tokenName(n[0].Token), l.now.Until(closedUntil))
		}
		if l.e.Closed < closedUntil {
			l.t.Fatalf("the name opens %v too early", l.e.Closed.Until(closedUntil))
		}
	}
}

// checkQueue checks that the queue is served from its head only, and keeps its order.
func (l *fixture) checkQueue(a action, before *locktable.Entry) {
	l.t.Helper()
	var expect []driver.Token // the live waiters, in their order before the step
	asksAgain := false        // the step's own waiter lost its turn because of the value, and claims again
	for _, w := range before.Queue {
		retried := l.gotRetry(w.Inbox, w.Token)
		if retried && w.ValueBelow != nil && w.Token == a.token && a.what == "acquire" {
			asksAgain = true
			continue
		}
		retried = retried && l.place(tokenName(w.Token)) == 0
		refused := w.Token == a.token && a.conditional && l.place(tokenName(a.token)) == 0 && l.holder(a.token) == nil
		if w.Expires > l.now && !(retried && w.ValueBelow != nil) && !refused {
			expect = append(expect, w.Token)
		}
	}
	var got []driver.Token // the leases granted now, and then the waiters
	for _, h := range l.newHolders(before) {
		if !(a.force && h.Token == a.token) {
			got = append(got, h.Token)
		}
	}
	for _, w := range l.e.Queue {
		got = append(got, w.Token)
	}
	if a.what == "release" || a.what == "break" || a.force { // a token may leave, or hold only during the step
		ignored := func(t driver.Token) bool {
			return t == a.token || t.IsZero() || l.countBroken(l.e, t) > l.countBroken(before, t)
		}
		got, expect = slices.DeleteFunc(got, ignored), slices.DeleteFunc(expect, ignored)
	}
	if (a.hasTicket || asksAgain) && !slices.Contains(expect, a.token) { // the model checks its place
		got = slices.DeleteFunc(got, func(t driver.Token) bool { return t == a.token })
	}
	if a.what == "acquire" && !slices.Contains(expect, a.token) && slices.Contains(got, a.token) {
		expect = append(expect, a.token) // it joined at the end, or found no waiter ahead
	}
	if !slices.Equal(got, expect) {
		l.t.Fatalf("%s by %s: served, then waiting, are %v, want %v", a.what, tokenName(a.token), tokenNames(got), tokenNames(expect))
	}
}

func (l *fixture) gotRetry(inbox string, t driver.Token) bool {
	return slices.Contains(l.e.Signals, locktable.Signal{Inbox: inbox, Signal: driver.Signal{Kind: driver.SignalRetry, Token: t}})
}

func tokenNames(ts []driver.Token) (out []string) {
	for _, t := range ts {
		out = append(out, tokenName(t))
	}
	return out
}

// countBroken returns how many breaks of the token's leases the entry has to remember.
func (l *fixture) countBroken(e *locktable.Entry, t driver.Token) (n int) {
	for _, b := range e.Broken {
		if b.Token == t && b.Until > l.now {
			n++
		}
	}
	return n
}

// checkSignals checks that promoted waiters, broken holders and, after a visible change,
// watches get signals, and that no other client gets one. It also checks that the entry
// remembers broken leases.
func (l *fixture) checkSignals(a action, before *locktable.Entry) {
	l.t.Helper()
	var want []locktable.Signal
	for _, h := range before.Holders {
		stillHeld := slices.ContainsFunc(l.e.Holders, func(n locktable.Holder) bool { return n.Fence == h.Fence })
		if stillHeld || h.Token.IsZero() || h.Expires <= l.now || h.Token == a.token {
			continue
		}
		want = append(want, locktable.Signal{Inbox: h.Inbox, Signal: driver.Signal{Kind: driver.SignalLost, Token: h.Token}})
		if l.countBroken(l.e, h.Token) == 0 {
			l.t.Fatalf("%s broke the lease of %s, but the entry does not remember that", a.what, tokenName(h.Token))
		}
	}
	waited := func(t driver.Token) bool {
		return slices.ContainsFunc(before.Queue, func(w locktable.Waiter) bool { return w.Token == t && w.Expires > l.now })
	}
	for _, h := range l.newHolders(before) {
		asksAgain := h.Token == a.token && l.gotRetry(h.Inbox, h.Token) // it lost its place, and claimed again
		if waited(h.Token) && !(a.force && h.Token == a.token) && !asksAgain {
			want = append(want, locktable.Signal{Inbox: h.Inbox, Signal: driver.Signal{
				Kind: driver.SignalGranted, Token: h.Token, Fence: h.Fence, Fences: h.Fences,
			}})
		}
	}
	for _, m := range before.Marks {
		if l.e.Visible && m.Until > l.now {
			want = append(want, locktable.Signal{Inbox: m.Inbox, Signal: driver.Signal{Kind: locktable.SignalChanged, Token: m.Token}})
		}
	}
	for _, s := range want {
		if !slices.Contains(l.e.Signals, s) {
			l.t.Fatalf("%s by %s: signal %+v to %q is missing", a.what, tokenName(a.token), s.Signal, s.Inbox)
		}
	}
	for _, s := range l.e.Signals { // a waiter that is promoted and leaves in one step also gets a signal
		if !slices.Contains(want, s) && !waited(s.Token) {
			l.t.Fatalf("%s by %s: signal %+v to %q is sent without a reason", a.what, tokenName(a.token), s.Signal, s.Inbox)
		}
	}
}

// checkValue checks that only a grant, or the token of a holder, writes the value; and
// that its time is no earlier than the end of any lease.
func (l *fixture) checkValue(a action, before *locktable.Entry) {
	l.t.Helper()
	got, old := l.e.Value, before.Value
	last := old.At
	for _, h := range before.Holders {
		if h.Expires <= l.now {
			last = max(last, h.Expires)
		} else if a.what != "raise" && !slices.ContainsFunc(l.e.Holders, func(now locktable.Holder) bool { return now.Fence == h.Fence }) {
			last = max(last, l.now)
		}
	}
	if written := got.At == l.now; got.Bytes != nil && old.Bytes != nil && got.At < last && !written {
		l.t.Fatalf("%s by %s: the value has the time %d, but a lease ended at %d", a.what, tokenName(a.token), got.At, last)
	}
	if got.Fence == old.Fence && bytes.Equal(got.Bytes, old.Bytes) && (got.At == old.At || got.At == last || got.At == l.now) {
		return
	}
	if got.Bytes == nil || got.Fence > l.e.Fence || got.At != l.now {
		l.t.Fatalf("%s by %s: the value is %+v, and was %+v", a.what, tokenName(a.token), got, old)
	}
	for _, h := range append(slices.Clone(before.Holders), l.e.Holders...) {
		if h.Fence == got.Fence && h.Token == a.token && bytes.Equal(got.Bytes, a.value) {
			return
		}
	}
	for _, w := range before.Queue { // a waiter may have held only during the step
		own := w.Token == a.token && bytes.Equal(got.Bytes, a.value)
		if (own || bytes.Equal(got.Bytes, w.Value)) && l.place(tokenName(w.Token)) == 0 {
			return
		}
	}
	l.t.Fatalf("%s by %s wrote %+v: %s", a.what, tokenName(a.token), got, entryText(l.e))
}

// checkValueError checks that a claim is refused because the value is not below its
// ValueBelow, and has no place.
func (l *fixture) checkValueError(c *driver.Claim, err error) {
	l.t.Helper()
	v, _ := errors.AsType[*driver.ValueNotBelowError](err)
	if v == nil || !bytes.Equal(v.Value, l.e.Value.Bytes) && l.e.Value.At != l.now || c.ValueBelow == nil || bytes.Compare(v.Value, c.ValueBelow) < 0 {
		l.t.Fatalf("%s is refused with %+v, although that is below %q", tokenName(c.Token), v, c.ValueBelow)
	}
	if l.holder(c.Token) != nil || l.place(tokenName(c.Token)) != 0 {
		l.t.Fatalf("%s is refused for the value, but still holds or waits", tokenName(c.Token))
	}
}

// checkStored checks that a changed entry is Changed, and can be stored and read.
func (l *fixture) checkStored(before *locktable.Entry) {
	l.t.Helper()
	stored := l.e.Append(nil)
	if !l.e.Changed && !bytes.Equal(stored, before.Append(nil)) {
		l.t.Fatalf("Changed is not set, but the entry changed from %s to %s", entryText(before), entryText(l.e))
	}
	back, err := locktable.Decode(stored)
	if err != nil {
		l.t.Fatalf("the stored form cannot be decoded: %v: %s", err, entryText(l.e))
	}
	if !bytes.Equal(back.Append(nil), stored) || back.Fence != l.e.Fence || len(back.Holders) != len(l.e.Holders) {
		l.t.Fatalf("stored %s, decoded %s", entryText(l.e), entryText(back))
	}
}

// checkVisible checks that Visible is set for changes that Inspect shows, and not for
// renewals.
func (l *fixture) checkVisible(a action, before *locktable.Entry) {
	l.t.Helper()
	isVisible := l.public(before) != l.public(l.e)
	if isVisible && !l.e.Visible {
		l.t.Fatalf("Visible is not set, but the entry changed from %s to %s", entryText(before), entryText(l.e))
	}
	// A place that expired and is taken again may look unchanged: with a ticket, its time
	// is the same.
	placeExpired := slices.ContainsFunc(before.Queue, func(w locktable.Waiter) bool { return w.Expires <= l.now })
	if l.e.Visible && !isVisible && a.value == nil && !placeExpired {
		l.t.Fatalf("Visible is set, but nothing visible changed: from %s to %s", entryText(before), entryText(l.e))
	}
	var g locktable.VisibleState
	if !g.Changed(before.Append(nil)) || g.Changed(before.Append(nil)) {
		l.t.Fatalf("Changed is not true for the first state, and false for the same one: %s", entryText(before))
	}
	if changed := g.Changed(l.e.Append(nil)); isVisible && !changed && !placeExpired || changed && !isVisible && before.Closed == l.e.Closed {
		l.t.Fatalf("the visible state has changed: %v, from %s to %s", changed, entryText(before), entryText(l.e))
	}
}

// public returns the public part of an entry, without its times.
func (l *fixture) public(e *locktable.Entry) string {
	e = clone(e)
	e.Broken, e.Value.At = nil, 0
	if e.Closed <= l.now {
		e.Closed = 0
	}
	released := ""
	for i := range e.Holders {
		e.Holders[i].Expires, e.Holders[i].LockDelay, e.Holders[i].TTL = 0, 0, 0
		released += fmt.Sprint(e.Holders[i].Token.IsZero()) // tokens are not shown
	}
	for i := range e.Queue {
		e.Queue[i].Expires, e.Queue[i].TTL, e.Queue[i].Fences, e.Queue[i].Value, e.Queue[i].ValueBelow = 0, 0, 0, nil, nil
	}
	return entryText(e) + released
}

// checkHeld checks a HeldError. RetryAfter must not be too late: if no other client sends
// a request, no earlier claim is granted. And at RetryAfter, some obstacle must end.
func (l *fixture) checkHeld(c *driver.Claim, held *driver.HeldError) {
	l.t.Helper()
	if held.RetryAfter <= 0 {
		l.t.Fatalf("RetryAfter is %v, although the claim is refused: %s", held.RetryAfter, entryText(l.e))
	}
	if place := l.place(tokenName(c.Token)); held.Position != place {
		l.t.Fatalf("position is %d, want %d", held.Position, place)
	}
	at := l.now.Add(held.RetryAfter)
	changes := l.e.Closed > l.now && l.e.Closed <= at
	instants := []locktable.Instant{l.e.Closed, at}
	for _, h := range l.e.Holders {
		instants = append(instants, h.Expires, h.Expires.Add(h.LockDelay))
		changes = changes || h.Expires <= at
	}
	for _, w := range l.e.Queue {
		instants = append(instants, w.Expires)
		changes = changes || w.Expires <= at && w.Token != c.Token
	}
	if !changes {
		l.t.Fatalf("RetryAfter is %v, but nothing changes then: %s", held.RetryAfter, entryText(l.e))
	}
	for _, then := range instants {
		for _, then := range []locktable.Instant{then - 1, then} {
			if then <= l.now || then >= at {
				continue
			}
			e := clone(l.e)
			for i := range e.Queue {
				if e.Queue[i].Token == c.Token {
					e.Queue[i].Expires = then + 1 // the claim keeps its place
				}
			}
			if _, err := e.Acquire(then, c, ""); err == nil {
				l.t.Fatalf("%v: RetryAfter is %v, but a claim after %v is granted: %s", op{what: "acquire", claim: *c},
					l.now.Until(at), l.now.Until(then), entryText(l.e))
			}
		}
	}
}

// raise runs Raise, and checks its rules: if the fence rose, the lease is the last one
// granted, and no other field of it has changed.
func (l *fixture) raise(who string, fence uint64) (uint64, error) {
	l.t.Helper()
	before := clone(l.e)
	got, err := l.e.Raise(l.now, &driver.LeaseRef{Name: "job", Token: tokenOf(who)}, fence)
	l.checkState()
	l.checkStored(before)
	l.checkVisible(action{value: []byte{}}, before)
	h := l.holder(tokenOf(who))
	switch {
	case errors.Is(err, driver.ErrNoSuchLease) != (h == nil):
		l.t.Fatalf("Raise for %s returned %v, but its lease is %+v", who, err, h)
	case l.e.Fence < before.Fence:
		l.t.Fatalf("the last fence fell from %d to %d", before.Fence, l.e.Fence)
	case err != nil:
		l.lastFence = max(l.lastFence, l.e.Fence)
		return got, err
	case h.Fence != got || got < fence:
		l.t.Fatalf("Raise for %s returned fence %d; want at least %d, and the lease's %d", who, got, fence, h.Fence)
	}
	for _, o := range before.Holders {
		if o.Token != h.Token || o.Fence == got {
			continue
		}
		if got <= before.Fence && got != o.Fence && o.Fence+uint64(o.Fences)-1 != before.Fence {
			l.t.Fatalf("the fence of %s was raised to %d, after %d", who, got, before.Fence)
		}
		if l.e.Fence != got+uint64(h.Fences)-1 {
			l.t.Fatalf("the last fence is %d, but %s was raised to %d with %d fences", l.e.Fence, who, got, h.Fences)
		}
		if o.Fence = got; o.Expires != h.Expires || o.Fences != h.Fences || o.Since != h.Since {
			l.t.Fatalf("the lease after Raise is %+v, before it %+v", *h, o)
		}
	}
	l.lastFence = max(l.lastFence, l.e.Fence)
	return got, nil
}
