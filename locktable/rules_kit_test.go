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
	kind        string // as in op
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
func (fx *fixture) step(a action, f func()) {
	fx.t.Helper()
	before := clone(fx.entry)
	f()
	fx.checkState()
	fx.checkFences(before)
	fx.checkHolders(a, before)
	fx.checkQueue(a, before)
	fx.checkSignals(a, before)
	fx.checkValue(a, before)
	fx.checkStored(before)
	fx.checkVisible(a, before)
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
func (fx *fixture) checkState() {
	fx.t.Helper()
	seen := map[driver.Token]bool{}
	held, last := int64(0), uint64(0)
	for _, h := range fx.entry.Holders {
		if held += int64(h.Weight); held > int64(h.Limit) {
			fx.t.Fatalf("%s has weight %d and limit %d, but the weights up to it add up to %d: %s", tokenName(h.Token), h.Weight, h.Limit, held, entryText(fx.entry))
		}
		if h.Fence <= last || h.Fences < 1 {
			fx.t.Fatalf("a fence of %s (%d, %d in a row) was granted before: %s", tokenName(h.Token), h.Fence, h.Fences, entryText(fx.entry))
		}
		last = h.Fence + uint64(h.Fences) - 1
		if h.Expires <= fx.now {
			fx.t.Fatalf("%s expired and still holds", tokenName(h.Token))
		}
		if !h.Token.IsZero() && seen[h.Token] {
			fx.t.Fatalf("%s is in the entry twice: %s", tokenName(h.Token), entryText(fx.entry))
		}
		seen[h.Token] = true
	}
	if last > fx.entry.Fence {
		fx.t.Fatalf("fence %d was granted, but the last fence is %d", last, fx.entry.Fence)
	}
	for i, w := range fx.entry.Queue {
		if i > 0 && w.Since < fx.entry.Queue[i-1].Since {
			fx.t.Fatalf("%s arrived before the waiter ahead of it: %s", tokenName(w.Token), entryText(fx.entry))
		}
		if w.Expires <= fx.now {
			fx.t.Fatalf("%s still waits in a place that has expired", tokenName(w.Token))
		}
		if w.Token.IsZero() || seen[w.Token] {
			fx.t.Fatalf("%s is in the entry twice: %s", tokenName(w.Token), entryText(fx.entry))
		}
		seen[w.Token] = true
	}
	for _, b := range fx.entry.Broken {
		if b.Until <= fx.now {
			fx.t.Fatalf("the break of %s is remembered after its lease would have ended", tokenName(b.Token))
		}
	}
	if len(fx.entry.Queue) > 0 && fx.entry.Closed <= fx.now {
		if w := fx.entry.Queue[0]; held+int64(w.Weight) <= int64(w.Limit) {
			fx.t.Fatalf("%s is the head of the queue and fits, but waits: %s", tokenName(w.Token), entryText(fx.entry))
		}
	}
}

// checkFences checks that every new grant has a greater fence than all earlier grants,
// and none below the clock.
func (fx *fixture) checkFences(before *locktable.Entry) {
	fx.t.Helper()
	if fx.entry.Fence < before.Fence {
		fx.t.Fatalf("the last fence fell from %d to %d", before.Fence, fx.entry.Fence)
	}
	for _, h := range fx.newHolders(before) {
		if h.Fence <= fx.lastFence || h.Fence <= before.Fence {
			fx.t.Fatalf("%s is granted fence %d after fence %d", tokenName(h.Token), h.Fence, max(fx.lastFence, before.Fence))
		}
		if fx.now > 0 && h.Fence < uint64(fx.now) {
			fx.t.Fatalf("%s is granted fence %d, below the clock %d", tokenName(h.Token), h.Fence, fx.now)
		}
		if end := fx.now.Add(fx.entry.Uncertainty); h.Since != end {
			fx.t.Fatalf("%s holds since %d; want %d, the latest possible time", tokenName(h.Token), h.Since, end)
		}
		fx.lastFence = h.Fence + uint64(h.Fences) - 1
	}
}

// newHolders returns the holders that before does not have, in the order of their grants.
func (fx *fixture) newHolders(before *locktable.Entry) (out []locktable.Holder) {
	for _, h := range fx.entry.Holders {
		if !slices.ContainsFunc(before.Holders, func(o locktable.Holder) bool { return o.Fence == h.Fence }) {
			out = append(out, h)
		}
	}
	return out
}

// checkHolders checks that only the lease's token, a break, and the clock change a lease.
func (fx *fixture) checkHolders(a action, before *locktable.Entry) {
	fx.t.Helper()
	closedUntil := before.Closed
	for _, h := range before.Holders {
		if h.Expires <= fx.now {
			if h.LockDelay > 0 {
				closedUntil = max(closedUntil, h.Expires.Add(h.LockDelay))
			}
			continue
		}
		i := slices.IndexFunc(fx.entry.Holders, func(n locktable.Holder) bool { return n.Fence == h.Fence })
		own := a.token == h.Token && !h.Token.IsZero()
		isBroken := a.kind == "break" && h.Fence <= a.fence && a.fence < h.Fence+uint64(h.Fences)
		switch {
		case i < 0:
			if !(own && a.kind == "release") && !isBroken && !(a.force && !own) {
				fx.t.Fatalf("%s by %s freed the lease of %s", a.kind, tokenName(a.token), tokenName(h.Token))
			}
		case own && (a.kind == "acquire" || a.kind == "renew"):
			if fx.entry.Holders[i].Expires < h.Expires {
				fx.t.Fatalf("%s shortened the lease of %s", a.kind, tokenName(h.Token))
			}
			h.Expires, h.TTL = fx.entry.Holders[i].Expires, a.ttl
			h.Wrote = h.Wrote || a.value != nil && a.kind == "renew"
			fallthrough
		case !own:
			if !reflect.DeepEqual(fx.entry.Holders[i], h) {
				fx.t.Fatalf("%s by %s changed the lease %+v to %+v", a.kind, tokenName(a.token), h, fx.entry.Holders[i])
			}
		}
	}
	if closedUntil > fx.now && !a.force { // even if this step is the first to notice that holder's expiry
		if n := fx.newHolders(before); len(n) > 0 {
			fx.t.Fatalf("%s is granted a name that is closed for %v", tokenName(n[0].Token), fx.now.Until(closedUntil))
		}
		if fx.entry.Closed < closedUntil {
			fx.t.Fatalf("the name opens %v too early", fx.entry.Closed.Until(closedUntil))
		}
	}
}

// checkQueue checks that the queue is served from its head only, and keeps its order.
func (fx *fixture) checkQueue(a action, before *locktable.Entry) {
	fx.t.Helper()
	var expect []driver.Token // the live waiters, in their order before the step
	asksAgain := false        // the step's own waiter lost its turn because of the value, and claims again
	for _, w := range before.Queue {
		retried := fx.gotRetry(w.Inbox, w.Token)
		if retried && w.ValueBelow != nil && w.Token == a.token && a.kind == "acquire" {
			asksAgain = true
			continue
		}
		retried = retried && fx.place(tokenName(w.Token)) == 0
		refused := w.Token == a.token && a.conditional && fx.place(tokenName(a.token)) == 0 && fx.holder(a.token) == nil
		if w.Expires > fx.now && !(retried && w.ValueBelow != nil) && !refused {
			expect = append(expect, w.Token)
		}
	}
	var got []driver.Token // the leases granted now, and then the waiters
	for _, h := range fx.newHolders(before) {
		if !(a.force && h.Token == a.token) {
			got = append(got, h.Token)
		}
	}
	for _, w := range fx.entry.Queue {
		got = append(got, w.Token)
	}
	if a.kind == "release" || a.kind == "break" || a.force { // a token may leave, or hold only during the step
		ignored := func(t driver.Token) bool {
			return t == a.token || t.IsZero() || fx.countBroken(fx.entry, t) > fx.countBroken(before, t)
		}
		got, expect = slices.DeleteFunc(got, ignored), slices.DeleteFunc(expect, ignored)
	}
	if (a.hasTicket || asksAgain) && !slices.Contains(expect, a.token) { // the model checks its place
		got = slices.DeleteFunc(got, func(t driver.Token) bool { return t == a.token })
	}
	if a.kind == "acquire" && !slices.Contains(expect, a.token) && slices.Contains(got, a.token) {
		expect = append(expect, a.token) // it joined at the end, or found no waiter ahead
	}
	if !slices.Equal(got, expect) {
		fx.t.Fatalf("%s by %s: served, then waiting, are %v, want %v", a.kind, tokenName(a.token), tokenNames(got), tokenNames(expect))
	}
}

func (fx *fixture) gotRetry(inbox string, t driver.Token) bool {
	return slices.Contains(fx.entry.Signals, locktable.Signal{Inbox: inbox, Signal: driver.Signal{Kind: driver.SignalRetry, Token: t}})
}

func tokenNames(ts []driver.Token) (out []string) {
	for _, t := range ts {
		out = append(out, tokenName(t))
	}
	return out
}

// countBroken returns the number of breaks of the token's leases that have not expired.
func (fx *fixture) countBroken(e *locktable.Entry, t driver.Token) (n int) {
	for _, b := range e.Broken {
		if b.Token == t && b.Until > fx.now {
			n++
		}
	}
	return n
}

// checkSignals checks that promoted waiters, broken holders and, after a visible change,
// watches get signals, and that no other client gets one. It also checks that the entry
// remembers broken leases.
func (fx *fixture) checkSignals(a action, before *locktable.Entry) {
	fx.t.Helper()
	var want []locktable.Signal
	for _, h := range before.Holders {
		stillHeld := slices.ContainsFunc(fx.entry.Holders, func(n locktable.Holder) bool { return n.Fence == h.Fence })
		if stillHeld || h.Token.IsZero() || h.Expires <= fx.now || h.Token == a.token {
			continue
		}
		want = append(want, locktable.Signal{Inbox: h.Inbox, Signal: driver.Signal{Kind: driver.SignalLost, Token: h.Token}})
		if fx.countBroken(fx.entry, h.Token) == 0 {
			fx.t.Fatalf("%s broke the lease of %s, but the entry does not remember that", a.kind, tokenName(h.Token))
		}
	}
	waited := func(t driver.Token) bool {
		return slices.ContainsFunc(before.Queue, func(w locktable.Waiter) bool { return w.Token == t && w.Expires > fx.now })
	}
	for _, h := range fx.newHolders(before) {
		asksAgain := h.Token == a.token && fx.gotRetry(h.Inbox, h.Token) // it lost its place, and claimed again
		if waited(h.Token) && !(a.force && h.Token == a.token) && !asksAgain {
			want = append(want, locktable.Signal{Inbox: h.Inbox, Signal: driver.Signal{
				Kind: driver.SignalGranted, Token: h.Token, Fence: h.Fence, Fences: h.Fences,
			}})
		}
	}
	for _, m := range before.Marks {
		if fx.entry.Visible && m.Until > fx.now {
			want = append(want, locktable.Signal{Inbox: m.Inbox, Signal: driver.Signal{Kind: locktable.SignalChanged, Token: m.Token}})
		}
	}
	for _, s := range want {
		if !slices.Contains(fx.entry.Signals, s) {
			fx.t.Fatalf("%s by %s: signal %+v to %q is missing", a.kind, tokenName(a.token), s.Signal, s.Inbox)
		}
	}
	for _, s := range fx.entry.Signals { // a waiter that is promoted and leaves in one step also gets a signal
		if !slices.Contains(want, s) && !waited(s.Token) {
			fx.t.Fatalf("%s by %s: signal %+v to %q is sent without a reason", a.kind, tokenName(a.token), s.Signal, s.Inbox)
		}
	}
}

// checkValue checks that only a grant, or the token of a holder, writes the value; and
// that its time is no earlier than the end of any lease.
func (fx *fixture) checkValue(a action, before *locktable.Entry) {
	fx.t.Helper()
	got, old := fx.entry.Value, before.Value
	last := old.At
	for _, h := range before.Holders {
		if h.Expires <= fx.now {
			last = max(last, h.Expires)
		} else if a.kind != "raise" && !slices.ContainsFunc(fx.entry.Holders, func(now locktable.Holder) bool { return now.Fence == h.Fence }) {
			last = max(last, fx.now)
		}
	}
	if written := got.At == fx.now; got.Bytes != nil && old.Bytes != nil && got.At < last && !written {
		fx.t.Fatalf("%s by %s: the value has the time %d, but a lease ended at %d", a.kind, tokenName(a.token), got.At, last)
	}
	if got.Fence == old.Fence && bytes.Equal(got.Bytes, old.Bytes) && (got.At == old.At || got.At == last || got.At == fx.now) {
		return
	}
	if got.Bytes == nil || got.Fence > fx.entry.Fence || got.At != fx.now {
		fx.t.Fatalf("%s by %s: the value is %+v, and was %+v", a.kind, tokenName(a.token), got, old)
	}
	for _, h := range append(slices.Clone(before.Holders), fx.entry.Holders...) {
		if h.Fence == got.Fence && h.Token == a.token && bytes.Equal(got.Bytes, a.value) {
			return
		}
	}
	for _, w := range before.Queue { // a waiter may have held only during the step
		own := w.Token == a.token && bytes.Equal(got.Bytes, a.value)
		if (own || bytes.Equal(got.Bytes, w.Value)) && fx.place(tokenName(w.Token)) == 0 {
			return
		}
	}
	fx.t.Fatalf("%s by %s wrote %+v: %s", a.kind, tokenName(a.token), got, entryText(fx.entry))
}

// checkValueError checks that a claim is refused because the value is not below its
// ValueBelow, and has no place.
func (fx *fixture) checkValueError(c *driver.Claim, err error) {
	fx.t.Helper()
	v, _ := errors.AsType[*driver.ValueNotBelowError](err)
	if v == nil || !bytes.Equal(v.Value, fx.entry.Value.Bytes) && fx.entry.Value.At != fx.now || c.ValueBelow == nil || bytes.Compare(v.Value, c.ValueBelow) < 0 {
		fx.t.Fatalf("%s is refused with %+v, although that is below %q", tokenName(c.Token), v, c.ValueBelow)
	}
	if fx.holder(c.Token) != nil || fx.place(tokenName(c.Token)) != 0 {
		fx.t.Fatalf("%s is refused for the value, but still holds or waits", tokenName(c.Token))
	}
}

// checkStored checks that a changed entry is Changed, and can be stored and read.
func (fx *fixture) checkStored(before *locktable.Entry) {
	fx.t.Helper()
	stored := fx.entry.Append(nil)
	if !fx.entry.Changed && !bytes.Equal(stored, before.Append(nil)) {
		fx.t.Fatalf("Changed is not set, but the entry changed from %s to %s", entryText(before), entryText(fx.entry))
	}
	back, err := locktable.Decode(stored)
	if err != nil {
		fx.t.Fatalf("the stored form cannot be decoded: %v: %s", err, entryText(fx.entry))
	}
	if !bytes.Equal(back.Append(nil), stored) || back.Fence != fx.entry.Fence || len(back.Holders) != len(fx.entry.Holders) {
		fx.t.Fatalf("stored %s, decoded %s", entryText(fx.entry), entryText(back))
	}
}

// checkVisible checks that Visible is set for changes that Inspect shows, and not for
// renewals.
func (fx *fixture) checkVisible(a action, before *locktable.Entry) {
	fx.t.Helper()
	isVisible := fx.public(before) != fx.public(fx.entry)
	if isVisible && !fx.entry.Visible {
		fx.t.Fatalf("Visible is not set, but the entry changed from %s to %s", entryText(before), entryText(fx.entry))
	}
	// A place that expired and is taken again may look unchanged: with a ticket, its time
	// is the same.
	placeExpired := slices.ContainsFunc(before.Queue, func(w locktable.Waiter) bool { return w.Expires <= fx.now })
	if fx.entry.Visible && !isVisible && a.value == nil && !placeExpired {
		fx.t.Fatalf("Visible is set, but nothing visible changed: from %s to %s", entryText(before), entryText(fx.entry))
	}
	var g locktable.VisibleState
	if !g.Changed(before.Append(nil)) || g.Changed(before.Append(nil)) {
		fx.t.Fatalf("Changed is not true for the first state, and false for the same one: %s", entryText(before))
	}
	if changed := g.Changed(fx.entry.Append(nil)); isVisible && !changed && !placeExpired || changed && !isVisible && before.Closed == fx.entry.Closed {
		fx.t.Fatalf("the visible state has changed: %v, from %s to %s", changed, entryText(before), entryText(fx.entry))
	}
}

// public returns the public part of an entry, without its times.
func (fx *fixture) public(e *locktable.Entry) string {
	e = clone(e)
	e.Broken, e.Value.At = nil, 0
	if e.Closed <= fx.now {
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
func (fx *fixture) checkHeld(c *driver.Claim, held *driver.HeldError) {
	fx.t.Helper()
	if held.RetryAfter <= 0 {
		fx.t.Fatalf("RetryAfter is %v, although the claim is refused: %s", held.RetryAfter, entryText(fx.entry))
	}
	if place := fx.place(tokenName(c.Token)); held.Position != place {
		fx.t.Fatalf("position is %d, want %d", held.Position, place)
	}
	at := fx.now.Add(held.RetryAfter)
	changes := fx.entry.Closed > fx.now && fx.entry.Closed <= at
	instants := []locktable.Instant{fx.entry.Closed, at}
	for _, h := range fx.entry.Holders {
		instants = append(instants, h.Expires, h.Expires.Add(h.LockDelay))
		changes = changes || h.Expires <= at
	}
	for _, w := range fx.entry.Queue {
		instants = append(instants, w.Expires)
		changes = changes || w.Expires <= at && w.Token != c.Token
	}
	if !changes {
		fx.t.Fatalf("RetryAfter is %v, but nothing changes then: %s", held.RetryAfter, entryText(fx.entry))
	}
	for _, then := range instants {
		for _, then := range []locktable.Instant{then - 1, then} {
			if then <= fx.now || then >= at {
				continue
			}
			e := clone(fx.entry)
			for i := range e.Queue {
				if e.Queue[i].Token == c.Token {
					e.Queue[i].Expires = then + 1 // the claim keeps its place
				}
			}
			if _, err := e.Acquire(then, c, ""); err == nil {
				fx.t.Fatalf("%v: RetryAfter is %v, but a claim after %v is granted: %s", op{kind: "acquire", claim: *c},
					fx.now.Until(at), fx.now.Until(then), entryText(fx.entry))
			}
		}
	}
}

// raise runs Raise, and checks its rules: if the fence rose, the lease is the last one
// granted, and no other field of it has changed.
func (fx *fixture) raise(who string, fence uint64) (uint64, error) {
	fx.t.Helper()
	before := clone(fx.entry)
	got, err := fx.entry.Raise(fx.now, &driver.LeaseRef{Name: "job", Token: tokenOf(who)}, fence)
	fx.checkState()
	fx.checkStored(before)
	fx.checkVisible(action{value: []byte{}}, before)
	h := fx.holder(tokenOf(who))
	switch {
	case errors.Is(err, driver.ErrNoSuchLease) != (h == nil):
		fx.t.Fatalf("Raise for %s returned %v, but its lease is %+v", who, err, h)
	case fx.entry.Fence < before.Fence:
		fx.t.Fatalf("the last fence fell from %d to %d", before.Fence, fx.entry.Fence)
	case err != nil:
		fx.lastFence = max(fx.lastFence, fx.entry.Fence)
		return got, err
	case h.Fence != got || got < fence:
		fx.t.Fatalf("Raise for %s returned fence %d; want at least %d, and the lease's %d", who, got, fence, h.Fence)
	}
	for _, o := range before.Holders {
		if o.Token != h.Token || o.Fence == got {
			continue
		}
		if got <= before.Fence && got != o.Fence && o.Fence+uint64(o.Fences)-1 != before.Fence {
			fx.t.Fatalf("the fence of %s was raised to %d, after %d", who, got, before.Fence)
		}
		if fx.entry.Fence != got+uint64(h.Fences)-1 {
			fx.t.Fatalf("the last fence is %d, but %s was raised to %d with %d fences", fx.entry.Fence, who, got, h.Fences)
		}
		if o.Fence = got; o.Expires != h.Expires || o.Fences != h.Fences || o.Since != h.Since {
			fx.t.Fatalf("the lease after Raise is %+v, before it %+v", *h, o)
		}
	}
	fx.lastFence = max(fx.lastFence, fx.entry.Fence)
	return got, nil
}
