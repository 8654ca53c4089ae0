package sim

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A tap is a driver between the root package and the driver of a process. It records and
// counts the requests. It knows the tokens of claims, which users never see.
type tap struct {
	rootDriver
	p *process

	mu       sync.Mutex // protects what follows
	acquires int
	renewals int
	releases int
	failed   int
	signals  int
	counts   map[uint64]*eventCounts // by Event.Claim
}

func newTap(p *process, d rootDriver) *tap {
	return &tap{rootDriver: d, p: p, counts: map[uint64]*eventCounts{}}
}

// A place is a claim in a backend's queue, according to the answers to its process.
type place struct {
	name          string
	token         driver.Token
	process       int
	weight, limit int
	queueTTL      time.Duration
	queues        bool        // it waits in the queue, and is not conditional
	conditional   bool        // it may be refused because of the name's value
	firstSent     moment      // when the first request was sent
	lastSent      moment      // when the last request was sent
	queuedFrom    moment      // the time from which on it is surely in the queue; never if it is not
	keptFrom      moment      // when the last request with the answer "queued" was sent
	over          bool        // granted or given up
	onNodes       []nodeClaim // over a quorum: by node
}

func (t *tap) count(n *int, by int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*n += by
}

func (t *tap) countFailure(err error) {
	if err != nil && (errors.Is(err, driver.ErrUnavailable) || !errors.Is(err, driver.ErrHeld) && !errors.Is(err, driver.ErrNoSuchLease)) {
		t.count(&t.failed, 1)
	}
}

func (t *tap) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	t.count(&t.acquires, 1)
	sent := t.p.w.now()
	q := &t.p.w.queue
	q.noteRequest(t.p, c, sent)
	t.p.w.turns.noteRequest(ctx, c.Token)
	g, err := t.rootDriver.Acquire(ctx, c)
	t.countFailure(err)
	held, isHeld := errors.AsType[*driver.HeldError](err)
	t.p.w.turns.noteAnswer(t.p.w, c, err == nil, isHeld && held.Position > 0)
	switch {
	case err == nil:
		q.noteGrant(t.p.w, c.Token, c.Force)
		t.p.w.terms.noteGrant(&c, sent, g)
	case isHeld && held.Position > 0:
		q.noteQueued(t.p.w, c.Token, sent)
		t.p.w.terms.noteQueued(&c, sent)
	}
	return g, err
}

func (t *tap) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	t.count(&t.renewals, 1)
	sent := t.p.w.now()
	answers, err := t.rootDriver.Renew(ctx, leases)
	for i, answer := range answers {
		if err == nil && answer == nil {
			t.p.w.terms.noteRenewal(leases[i], sent)
		}
	}
	t.countFailure(errors.Join(append(answers, err)...))
	return answers, err
}

func (t *tap) Release(ctx context.Context, l driver.LeaseRef) error {
	t.count(&t.releases, 1)
	t.p.w.queue.noteEnd(l.Token)
	t.p.w.turns.noteRelease(l.Token)
	err := t.rootDriver.Release(ctx, l)
	t.countFailure(err)
	return err
}

func (t *tap) Listen(f func(driver.Signal)) (stop func()) {
	return t.rootDriver.Listen(func(s driver.Signal) {
		t.count(&t.signals, 1)
		if s.Kind == driver.SignalGranted {
			t.p.w.queue.noteGrant(t.p.w, s.Token, false)
			t.p.w.terms.noteSignal(s)
			t.p.w.turns.noteSignal(s.Token)
		}
		f(s)
	})
}
