package worker

import (
	"cmp"
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// An actor makes one claim after the other.
type actor struct {
	*worker
	client    Client
	index     int  // of the client
	leads     bool // it also takes part in the election
	overstays bool // the current section works on when its lease is over
	dice      *rand.Rand
}

func (a *actor) chance(percent int) bool { return a.dice.IntN(100) < percent }

func (a *actor) act() {
	for a.awaitTurn(); a.draining.Err() == nil; a.awaitTurn() {
		switch name := a.Names[a.dice.IntN(len(a.Names))]; {
		case a.leads && a.chance(25):
			a.lead()
		case name.Kind == history.Election: // only lead claims it
			a.claimOne(a.Names[0], history.Whole, 1)
		case name.Kind == history.Mutex && a.chance(15):
			a.claimAll(name)
		case name.Kind == history.Semaphore:
			a.claimOne(name, history.Permits, 1+a.dice.IntN(min(2, name.Limit)))
		case name.Kind == history.RW && a.chance(75):
			a.claimOne(name, history.Shared, 1)
		default:
			a.claimOne(name, history.Whole, 1)
		}
	}
}

func (a *actor) newClaim(name history.Name, mode string, weight int, how string) *history.Claim {
	return &history.Claim{
		ID: a.nextID.Add(1) - 1, Worker: a.Worker, Life: a.Life, Client: a.index,
		Name: name.Name, Mode: mode, Weight: weight, How: how,
	}
}

// begin sets Asked and reports the claims to the controller. The controller may be slow
// to read the reports, so begin then sets Asked again. The controller has the first value
// if the process dies.
func (a *actor) begin(claims ...*history.Claim) {
	at := a.now()
	for _, c := range claims {
		c.Asked = at
		a.send(Message{Open: c})
	}
	at = a.now()
	for _, c := range claims {
		c.Asked = at
	}
}

// waitContext returns a context for the wait of a claim. Mostly it lasts longer than a
// dead holder's lease, and sometimes only for a moment, so that waits end in every state.
func (a *actor) waitContext() (context.Context, context.CancelFunc) {
	d := 4*a.TTL + 10*time.Second
	if a.chance(15) {
		d = time.Duration(a.dice.Int64N(int64(a.TTL) / 4))
	}
	// Draining ends the waits.
	return context.WithTimeout(a.draining, d)
}

func (a *actor) claimOne(name history.Name, mode string, weight int) {
	how := history.Wait
	if a.chance(20) {
		how = history.Try
	}
	c := a.newClaim(name, mode, weight, how)
	ctx, cancel := a.waitContext()
	defer cancel()
	a.begin(c)
	client := a.client
	limiter, can := client.(Limiter)
	if a.overstays = can && mode == history.Whole && a.overstay.CompareAndSwap(true, false); a.overstays {
		client = limiter.WithMaxHold(a.TTL)
	}
	lease, err := client.Claim(ctx, name, mode, weight, how == history.Try)
	if a.recordAnswer(err, c) {
		a.section([]*history.Claim{c}, []Lease{lease})
	} else if a.overstays {
		a.overstay.Store(true) // for the next section
	}
	a.overstays = false
}

// claimAll claims this mutex and the next one, unless their names differ only in case.
// With a backend that folds such names, the claim would wait for itself.
func (a *actor) claimAll(name history.Name) {
	names := []history.Name{name}
	for i, n := range a.Names {
		next := a.Names[(i+1)%len(a.Names)]
		if n == name && next.Kind == history.Mutex && !strings.EqualFold(n.Name, next.Name) {
			names = append(names, next)
		}
	}
	claims := make([]*history.Claim, len(names))
	for i, n := range names {
		claims[i] = a.newClaim(n, history.Whole, 1, history.All)
		claims[i].Group = claims[0].ID
	}
	ctx, cancel := a.waitContext()
	defer cancel()
	a.begin(claims...)
	leases, err := a.client.All(ctx, names)
	if a.recordAnswer(err, claims...) {
		a.section(claims, leases)
	}
}

func (a *actor) lead() {
	for _, name := range a.Names {
		if name.Kind != history.Election {
			continue
		}
		c := a.newClaim(name, history.Whole, 1, history.Lead)
		ctx, cancel := a.waitContext()
		defer cancel()
		a.begin(c)
		led := false
		err := a.client.Lead(ctx, name, func(lease Lease) {
			led = a.recordAnswer(nil, c)
			a.section([]*history.Claim{c}, []Lease{lease})
		})
		if !led {
			a.recordAnswer(cmp.Or(err, context.Canceled), c)
		}
	}
}

// recordAnswer records the answer, and reports whether the claims are held.
func (a *actor) recordAnswer(err error, claims ...*history.Claim) bool {
	at := a.now()
	for _, c := range claims {
		c.Answered = at
		if err != nil {
			c.Answer, c.Error = a.client.AnswerOf(err), err.Error()
			a.send(Message{Line: &history.Line{Claim: c}})
			continue
		}
		c.Answer, c.Got = history.Granted, at
	}
	return err == nil
}
