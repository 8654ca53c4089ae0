package pawl

import "time"

// Observer is told what happens to a client's locks, for logs, metrics and traces. Every field may be nil.
// The functions are called from the goroutine in which the thing happens, so they should be quick; they may
// be called by several at once. They may read the lease that they are told of, but neither release it nor close
// the client: both wait for them.
type Observer struct {
	// Waiting: a claim was told that the name is held, or that its place in the queue has changed.
	Waiting func(held *HeldError)
	// Acquired: a lease was granted after waiting that long.
	Acquired func(l *Lease, waited time.Duration)
	// Released: a lease was released after it was held that long. A non-nil err is what Release answers: it was no
	// longer held (ErrLost), or the backend could not be told, and the client goes on trying until the lease would
	// have expired.
	Released func(l *Lease, held time.Duration, err error)
	// Lost: a lease ended without a release.
	Lost func(l *Lease, err *LostError)
	// Trouble: an attempt failed, and will be repeated if there is still time. Op is "acquire", "renew" or
	// "release"; count is how many names it was about.
	Trouble func(op, name string, count int, err error)
}

func (o *Observer) waiting(held *HeldError) {
	if o != nil && o.Waiting != nil {
		o.Waiting(held)
	}
}

func (o *Observer) acquired(l *Lease, waited time.Duration) {
	if o != nil && o.Acquired != nil {
		o.Acquired(l, waited)
	}
}

func (o *Observer) released(l *Lease, err error) {
	if o != nil && o.Released != nil {
		o.Released(l, time.Since(l.begun), err)
	}
}

func (o *Observer) lost(l *Lease, err *LostError) {
	if o != nil && o.Lost != nil {
		o.Lost(l, err)
	}
}

func (o *Observer) trouble(op, name string, count int, err error) {
	if o != nil && o.Trouble != nil {
		o.Trouble(op, name, count, err)
	}
}
