package quorumlock

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Acquire implements driver.Driver. It asks all nodes at once.
//
//   - A majority grants it: then they agree on its fence, see agree.go, and it is
//     granted.
//   - A majority answers, and too many of them refuse it: it is held. A try is taken back
//     where it was granted. A claim that queues keeps what it has, its places and its
//     grants, unless the vote is split, see split.go.
//   - So many refuse it because of the value of the name that no majority can grant it:
//     then it is refused, and all that it has is taken back, see value.go.
//   - No majority answers: the outcome is unknown, and the caller asks again or releases.
//     A try is taken back.
func (d *Driver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := c.Validate(); err != nil {
		return driver.Grant{}, err
	}
	if err := d.begin(ctx); err != nil {
		return driver.Grant{}, err
	}
	defer d.work.Done()
	p, nth, err := d.turn(ctx, c)
	if err != nil {
		return driver.Grant{}, err
	}
	c.Value, c.Above = bytes.Clone(c.Value), bytes.Clone(c.Above)
	c.Owner, c.Ticket = p.tag.on(c.Owner), p.tag.ticket
	a := &attempt{d: d, claim: c, place: p, nth: nth, strays: map[int]bool{}}
	began := time.Now()
	grant, err := a.run(ctx)
	if held, ok := errors.AsType[*driver.HeldError](err); ok {
		p.outdate(held)
	}
	if !a.left {
		defer p.done()
	}
	if err == nil && ctx.Err() != nil {
		return driver.Grant{}, ctx.Err() // it is too late: the caller has gone, and settles it
	}
	if err == nil {
		d.held.granted(c, grant.Fence, began.Add(surely(grant.TTL)))
		d.placed.leave(c.Token, c.Name)
	}
	return grant, err
}

// An attempt is one call of Acquire.
type attempt struct {
	d     *Driver
	claim driver.Claim
	place *place
	nth   int // of the attempts at the place

	mu     sync.Mutex   // protects what follows
	void   bool         // nobody wants what a node may still grant
	over   bool         // the caller was told that it is held, and waits
	strays map[int]bool // nodes that answered when nobody was looking any more, before it was void
	left   bool         // the caller has gone, and what the votes amount to is found out without it
	found  bool         // that was found out
}

type ballots = []vote[driver.Grant]

func (a *attempt) run(ctx context.Context) (driver.Grant, error) {
	votes := a.canvass(ctx, a.d.everyone())
	if succeeded(votes) >= a.d.majority {
		grant, err := a.conclude(ctx, votes)
		if err == nil || a.left {
			return grant, err
		}
		if errors.Is(err, driver.ErrHeld) || !a.claim.Queue {
			a.takeBack(ctx, votes)
		}
		return driver.Grant{}, err
	}
	if err := a.outdone(votes); err != nil {
		a.leave(ctx)
		return driver.Grant{}, err
	}
	if succeeded(votes)+refused(votes) < a.d.majority || nobodyElse(votes) {
		err := trouble(ctx, a.d, "acquire", a.claim.Name, votes)
		if _, shown := a.d.held.find(a.claim.Token, a.claim.Name); !a.claim.Queue && !shown {
			a.takeBack(ctx, votes)
		}
		return driver.Grant{}, err
	}
	if !a.claim.Queue {
		a.takeBack(ctx, votes)
		return driver.Grant{}, a.d.refusal(a.claim, votes, 0)
	}
	soon := a.settle(ctx, votes)
	if a.end(votes) {
		soon = time.Millisecond
	}
	return driver.Grant{}, a.d.refusal(a.claim, votes, soon)
}

// canvass sends the claim to these nodes, with the fence that we would like all of them
// to grant.
func (a *attempt) canvass(ctx context.Context, nodes []int) ballots {
	d := a.d
	sent := d.now()
	wish, now := a.claim, d.ticket()
	wish.MinFence = uint64(max(sent.UnixMicro()+d.lead.Load(), 1))
	votes := poll(ctx, d, ballot[driver.Grant]{
		nodes: nodes, token: a.claim.Token,
		send: func(ctx context.Context, i int) (driver.Grant, error) {
			c := wish
			c.Ticket = a.place.ticket(i, now)
			return d.ask(ctx, i, c)
		},
		decided: func(votes ballots) bool {
			yes, no, missing := succeeded(votes), refused(votes), len(nodes)-answered(votes)
			return yes >= d.majority || yes+missing < d.majority && (yes+no >= d.majority || yes+no+missing < d.majority)
		},
		first: a.note,
		after: a.tooLate,
	})
	d.learn(sent, votes)
	return votes
}

// ask sends a claim to one node, when nothing that releases it can arrive there any more.
func (d *Driver) ask(ctx context.Context, i int, c driver.Claim) (driver.Grant, error) {
	k := dueAt{i, c.Token, c.Name}
	if err := d.owed.claim(ctx, k); err != nil {
		return driver.Grant{}, err
	}
	c.Value = nil // see value.go
	end := driver.End(ctx)
	grant, err := d.nodes[i].Acquire(ctx, c)
	if !isRefusal(err) && !told(err) {
		d.owed.unanswered(k, end)
	}
	return grant, err
}

// note remembers how a node answered, and whether a signal came before it that is now
// worth something.
func (a *attempt) note(i int, v vote[driver.Grant]) {
	held, _ := errors.AsType[*driver.HeldError](v.err)
	a.place.told(i, a.claim, a.nth, v, held)
	if held != nil && a.claim.Queue {
		a.place.weigh()
	}
}

// learn adjusts how far ahead of our clock we propose fences: as far as the furthest of
// the nodes' clocks was, when it was asked, so that the next proposal is the highest
// number there is; and slowly less, while that is enough.
func (d *Driver) learn(sent time.Time, votes ballots) {
	var low, high uint64
	for _, v := range votes {
		if v.in && v.err == nil {
			if high = max(high, v.value.Fence); low == 0 || v.value.Fence < low {
				low = v.value.Fence
			}
		}
	}
	lead := d.lead.Load()
	if low == high {
		d.lead.CompareAndSwap(lead, lead-lead/256)
		return
	}
	if ahead := int64(high) - sent.UnixMicro(); ahead > lead && ahead <= driver.MaxLead.Microseconds() {
		// else it is no matter of clocks
		d.lead.CompareAndSwap(lead, min(ahead+ahead/4+50, driver.MaxLead.Microseconds()))
	}
}

// tooLate takes back what a node grants to an attempt that is void.
func (a *attempt) tooLate(i int, v vote[driver.Grant]) {
	if !mayHold(v) {
		return
	}
	a.mu.Lock()
	void, over := a.void, a.over
	if !void {
		a.strays[i] = true
	}
	a.mu.Unlock()
	switch {
	case void:
		a.d.owed.owes(at(i, a.lease()), a.lease(), a.claim.TTL)
	case over && v.err == nil: // it waits, and has a vote that it does not know of
		a.d.heard.Notify(driver.Signal{Kind: driver.SignalLook, Token: a.claim.Token})
	}
}

// end notes that the caller goes to wait with these votes. It reports whether a grant has
// come in since they were counted; those that come later are said to the listeners.
func (a *attempt) end(votes ballots) (stray bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	for i := range a.strays {
		stray = stray || !votes[i].in
	}
	return stray
}

// takeBack releases what the nodes granted, or may have granted. It waits for those that
// answer quickly. One whose answer is still under way sees for itself that it came too
// late.
//
// A node that refused has at most a place of the same token in its queue, which stays: a
// waiter may try, too.
func (a *attempt) takeBack(ctx context.Context, votes ballots) {
	var nodes []int
	a.mu.Lock()
	a.void = true
	for i, v := range votes {
		if a.strays[i] || mayHold(v) {
			nodes = append(nodes, i)
		}
	}
	a.mu.Unlock()
	a.givesBack(nodes)
	a.d.free(ctx, a.lease(), nodes, a.claim.TTL)
}

// givesBack forgets the grants of these nodes, before they are told.
func (a *attempt) givesBack(nodes []int) {
	if len(nodes) > 0 {
		a.place.givesBack(nodes)
		a.d.held.unsure(a.claim.Token, a.claim.Name)
	}
}

func (a *attempt) lease() driver.LeaseRef {
	return driver.LeaseRef{Name: a.claim.Name, Token: a.claim.Token, TTL: a.claim.TTL}
}

// mayHold reports whether the claim may be granted on the node that answered so.
func mayHold(v vote[driver.Grant]) bool {
	return v.in && !isRefusal(v.err) && !errors.Is(v.err, driver.ErrInvalid)
}

func refused(votes ballots) (n int) {
	for _, v := range votes {
		if isRefusal(v.err) {
			n++
		}
	}
	return n
}

// nobodyElse reports whether no node has refused a claim because of others.
func nobodyElse(votes ballots) bool {
	return !slices.ContainsFunc(votes, func(v vote[driver.Grant]) bool { return errors.Is(v.err, driver.ErrHeld) })
}

// isRefusal reports whether a node has not granted a claim, and has said why.
func isRefusal(err error) bool {
	return errors.Is(err, driver.ErrHeld) || errors.Is(err, driver.ErrValue)
}

func answered[T any](votes []vote[T]) (n int) {
	for _, v := range votes {
		if v.in {
			n++
		}
	}
	return n
}

// nth is the n-th smallest, from 1.
func nth[T interface{ ~int | ~int64 | ~uint64 }](n int, of []T) T {
	slices.Sort(of)
	return of[n-1]
}
