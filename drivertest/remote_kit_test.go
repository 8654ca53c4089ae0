package drivertest_test

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
)

// remote is a client whose requests go over a network that can delay them: the call
// returns when its ctx ends, and the request still arrives. So the server checks the
// request's end.
type remote struct {
	*faulty
	network network
	net     *drivertest.Network

	mu      sync.Mutex // protects delayed
	delayed []*request // requests that the network has delayed
}

// network is a fault of the network, or of its client. All fields may be nil.
type network struct {
	isLate       func(p *request, others []*request, late bool) bool  // reports whether the server treats p as late
	awaitAnswer  func(ctx context.Context, done <-chan struct{})      // waits for the answer, instead of until ctx ends
	onLostAnswer func(r *remote, p *request, send func() error) error // returns p's result after its answer was lost
}

// request is one request on its way.
type request struct {
	op, name  string
	sent      time.Time
	claim     *driver.Claim // nil if it is no single claim
	isAll     bool          // it is an AcquireAll
	hasEnd    bool          // the server must check end
	end       time.Time     // on the server's clock
	known     bool          // its token held or waited when it was sent
	unbounded bool          // its ctx had no deadline
}

// send sends a request. When it arrives, send runs do; late reports whether the request
// came after its end. It returns the result of do, or the ctx's error.
func send[T any](ctx context.Context, r *remote, p *request, do func(ctx context.Context, late bool) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	var answer T
	now := r.table.server.now
	_, bounded := ctx.Deadline()
	p.unbounded, p.sent = !bounded, time.Now()
	p.end = now().Add(time.Until(driver.End(ctx)))
	arrives, err := r.net.Send()
	if err != nil {
		return none, &driver.Error{Backend: "memory", Op: driver.Op(p.op), Name: p.name, Err: err}
	}
	select {
	case <-arrives:
	default:
		r.mu.Lock()
		r.delayed = append(r.delayed, p)
		r.mu.Unlock()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-arrives
		late := p.hasEnd && !now().Before(p.end)
		if r.network.isLate != nil {
			late = r.network.isLate(p, r.delayedRequests(), late)
		}
		answer, err = do(context.WithoutCancel(ctx), late)
		if lost := r.net.Answer(); lost != nil {
			answer, err = none, &driver.Error{Backend: "memory", Op: driver.Op(p.op), Name: p.name, Err: lost}
			if r.network.onLostAnswer != nil {
				err = r.network.onLostAnswer(r, p, func() error {
					answer, err = do(context.WithoutCancel(ctx), late)
					return err
				})
			}
		}
	}()
	if r.network.awaitAnswer != nil {
		r.network.awaitAnswer(ctx, done)
	} else {
		select {
		case <-done:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return none, ctx.Err()
		}
	}
	select {
	case <-done:
		return answer, err
	default:
		return none, ctx.Err()
	}
}

func (r *remote) delayedRequests() []*request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.delayed
}

func (r *remote) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := c.Validate(); err != nil {
		return driver.Grant{}, err
	}
	known := r.holdsOrWaits(c)
	return send(ctx, r, &request{op: "acquire", name: c.Name, claim: &c, hasEnd: true, known: known}, func(ctx context.Context, late bool) (driver.Grant, error) {
		if late {
			return driver.Grant{}, errLate
		}
		return r.faulty.Acquire(ctx, c)
	})
}

func (r *remote) AcquireAll(ctx context.Context, claims []driver.Claim) ([]driver.Grant, error) {
	if err := driver.ValidateAll(claims); err != nil {
		return nil, err
	}
	return send(ctx, r, &request{op: "acquire", isAll: true, hasEnd: true}, func(ctx context.Context, late bool) ([]driver.Grant, error) {
		if late {
			return nil, errLate
		}
		return r.faulty.AcquireAll(ctx, claims)
	})
}

// holdsOrWaits reports whether the claim's token has a lease or a place in the queue.
func (r *remote) holdsOrWaits(c driver.Claim) bool {
	if r.faulty.held(c.Name, c.Token) != nil {
		return true
	}
	for _, w := range r.stored(c.Name).Queue {
		if w.Token == c.Token {
			return true
		}
	}
	return false
}

var errLate = &driver.Error{Backend: "memory", Op: "acquire", Err: context.DeadlineExceeded}

func (r *remote) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	writes := slices.ContainsFunc(leases, func(l driver.LeaseRef) bool { return l.Value != nil })
	return send(ctx, r, &request{op: "renew", hasEnd: writes}, func(ctx context.Context, late bool) ([]error, error) {
		if late {
			return nil, errLate
		}
		return r.faulty.Renew(ctx, leases)
	})
}

func (r *remote) Release(ctx context.Context, l driver.LeaseRef) error {
	_, err := send(ctx, r, &request{op: "release", name: l.Name, hasEnd: l.HasEnd || l.Value != nil}, func(ctx context.Context, late bool) (struct{}, error) {
		if late {
			return struct{}{}, errLate
		}
		return struct{}{}, r.faulty.Release(ctx, l)
	})
	return err
}

func (r *remote) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	return send(ctx, r, &request{op: "inspect", name: name}, func(ctx context.Context, _ bool) (driver.Entry, error) {
		return r.faulty.Inspect(ctx, name)
	})
}

func (r *remote) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
	_, err := send(ctx, r, &request{op: "break", name: name}, func(ctx context.Context, _ bool) (struct{}, error) {
		return struct{}{}, r.faulty.Break(ctx, name, fence, delay, by)
	})
	return err
}

func (r *remote) List(ctx context.Context, prefix string) iter.Seq2[driver.Entry, error] {
	return func(yield func(driver.Entry, error) bool) {
		if _, err := r.Inspect(ctx, prefix); err != nil {
			yield(driver.Entry{}, err)
			return
		}
		r.faulty.List(ctx, prefix)(yield)
	}
}
