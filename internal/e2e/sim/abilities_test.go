package sim

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

// A pushingDriver is a driver with optional abilities: it grants several names in one
// step, and pushes changes.
type pushingDriver struct {
	*tap
	r *link
}

// AcquireAll implements driver.AllAcquirer.
func (a pushingDriver) AcquireAll(ctx context.Context, claims []driver.Claim) ([]driver.Grant, error) {
	a.count(&a.acquires, len(claims))
	q, sent := &a.p.w.queue, a.p.w.now()
	for _, c := range claims {
		q.noteRequest(a.p, c, sent)
		a.p.w.turns.noteRequest(ctx, c.Token)
	}
	grants, err := sendOver(ctx, a.r, "acquire all", claims[0].Name, true, func(s server) ([]driver.Grant, error) {
		d, can := s.(driver.AllAcquirer)
		if !can { // a planted bug hides it
			return nil, errors.ErrUnsupported
		}
		return d.AcquireAll(context.Background(), claims)
	})
	a.countFailure(err)
	if err == nil {
		for i, c := range claims {
			q.noteGrant(a.p.w, c.Token, false)
			a.p.w.terms.noteGrant(&c, sent, grants[i])
			a.p.w.turns.noteAnswer(a.p.w, c, true, false)
		}
	}
	return grants, err
}

// Properties implements driver.Driver.
func (a pushingDriver) Properties() driver.Properties {
	p := a.tap.Properties()
	p.PushesChanges = true
	return p
}

// Watch implements driver.Watcher. Its notices are late or lost, like signals, and they
// stop when the node loses its data.
func (a pushingDriver) Watch(name string, f func()) (stop func()) {
	r := a.r
	r.n.mu.Lock()
	d := engine.Full(r.n.memory.Driver())
	r.n.mu.Unlock()
	end := d.Watch(name, func() {
		w := r.w.weather()
		r.mu.Lock()
		lost, delay := w.lostSignals > 0 && r.dice.chance(w.lostSignals), w.drawDelay(r.dice)
		r.mu.Unlock()
		if !lost {
			r.p.after(max(delay, time.Nanosecond), func() {
				if !r.isCut() {
					f()
				}
			})
		}
	})
	return func() { end(); _ = d.Close() }
}
