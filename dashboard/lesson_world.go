package dashboard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/fence"
	"github.com/pawl-go/pawl/memlock"
)

// A lesson is a small simulation: locks in memory whose clock only the visitor moves, two
// workers, and a store that checks fences. Only the time is not real. The claims, the
// fences, the expiry and the refusal are.
type lesson struct {
	clock *memlock.Clock
	locks driver.Driver
	guard fence.Memory
	a, b  lessonWorker
	store string // the content of the store
	log   []lessonLine
}

// A lessonWorker works on the invoice, and renews nothing.
type lessonWorker struct {
	name  string
	claim driver.Claim
	fence uint64
	state string
}

// A lessonLine is the result of a step.
type lessonLine struct {
	words   string
	refused bool
}

const (
	lessonName = "invoice:42"
	lessonTTL  = 30 * time.Second
)

func newLesson(now time.Time) *lesson {
	clock := memlock.NewClock(now)
	worker := func(name string, pid int) lessonWorker {
		return lessonWorker{name: name, state: "idle", claim: driver.Claim{
			Name: lessonName, Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: lessonTTL,
			Owner: driver.Owner{Client: name, Host: name, PID: pid},
		}}
	}
	return &lesson{
		clock: clock, locks: memlock.New(&memlock.Options{Now: clock.Now}),
		a: worker("worker A", 1), b: worker("worker B", 2), store: "empty",
	}
}

// A lessonStep is one step of the lesson: the next button, its explanation, and its
// action.
type lessonStep struct {
	button, why string
	do          func(ctx context.Context, l *lesson) error
}

var lessonSteps = []lessonStep{
	{"A takes the lock", "Two workers may write an invoice. A lock says that only one does, and each lease has a number: its fence.",
		func(ctx context.Context, l *lesson) error { return l.lock(ctx, &l.a) }},
	{"A writes a draft", "A sends its fence along with what it writes. The store remembers the greatest fence it has seen.",
		func(_ context.Context, l *lesson) error { return l.write(&l.a, "a draft") }},
	{"A is paused", "Before its next write A stands still: a long garbage collection, a laptop that is closed, a machine that is moved. A does not notice.",
		func(_ context.Context, l *lesson) error {
			l.a.state = "paused, about to write"
			l.say("A stands still. It renews nothing now.")
			return nil
		}},
	{"30 seconds pass", "Nobody renews the lease of A.",
		func(ctx context.Context, l *lesson) error { return l.pass(ctx) }},
	{"B takes the lock", "The lease of A has run out, so the lock is free. Nobody could know that A will come back.",
		func(ctx context.Context, l *lesson) error { return l.lock(ctx, &l.b) }},
	{"B writes the invoice", "B has a greater fence than A had.",
		func(_ context.Context, l *lesson) error { return l.write(&l.b, "the invoice") }},
	{"A wakes up and writes", "A still believes that it holds the lock: it looked before it was paused. No lock can stop what it does now.",
		func(_ context.Context, l *lesson) error { return l.write(&l.a, "an old draft") }},
	{"A asks for its lease", "Now A renews, as it does again and again.",
		func(ctx context.Context, l *lesson) error { return l.renew(ctx) }},
}

func (l *lesson) say(words string)    { l.log = append(l.log, lessonLine{words: words}) }
func (l *lesson) refuse(words string) { l.log = append(l.log, lessonLine{words, true}) }

func (l *lesson) lock(ctx context.Context, w *lessonWorker) error {
	g, err := l.locks.Acquire(ctx, w.claim)
	if err != nil {
		return err
	}
	w.fence, w.state = g.Fence, "holds the lock"
	l.say(fmt.Sprintf("%s is granted %s with fence %d, for %v.", w.name, lessonName, g.Fence, g.TTL))
	return nil
}

// write writes to the store, which refuses a fence below the greatest one.
func (l *lesson) write(w *lessonWorker, what string) error {
	err := l.guard.Check(lessonName, w.fence)
	if errors.Is(err, driver.ErrStale) {
		w.state = "was refused"
		l.refuse("The store refuses what " + w.name + " writes: " + bare(err) + ".")
		return nil
	}
	if err != nil {
		return err
	}
	l.store = fmt.Sprintf("%s, by %s, fence %d", what, w.name, w.fence)
	l.say(fmt.Sprintf("%s writes %s with fence %d. The store takes it.", w.name, what, w.fence))
	return nil
}

func (l *lesson) pass(ctx context.Context) error {
	l.clock.Advance(lessonTTL)
	e, err := l.locks.Inspect(ctx, lessonName)
	if err != nil {
		return err
	}
	l.say(fmt.Sprintf("%v later %s has %s. Its last fence is remembered: %d.", lessonTTL, lessonName, count(len(e.Holders), "holder"), e.Fence))
	return nil
}

func (l *lesson) renew(ctx context.Context) error {
	ref := driver.LeaseRef{Name: lessonName, Token: l.a.claim.Token, TTL: lessonTTL}
	each, err := l.locks.Renew(ctx, []driver.LeaseRef{ref})
	if err != nil {
		return err
	}
	if !errors.Is(each[0], driver.ErrNoSuchLease) {
		return fmt.Errorf("the renewal of a lease that has expired says %w", each[0])
	}
	l.a.state = "knows that it lost the lock"
	l.refuse("The locks answer A: " + bare(each[0]) + ". Only now A knows; the store knew before.")
	return nil
}

// take does the next step, unless it was done already: a browser may send a form twice.
func (l *lesson) take(ctx context.Context, step int) error {
	if step != len(l.log) || step >= len(lessonSteps) {
		return nil
	}
	return lessonSteps[step].do(ctx, l)
}
