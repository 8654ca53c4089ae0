package cronlock

import (
	"context"

	"github.com/pawl-go/pawl"
)

// Elector makes all jobs of a scheduler run on the instance that leads. When the lead
// changes during a tick, possibly neither instance runs it, or, if their clocks differ,
// both do. If that must not happen, use a locker or a [Job].
type Elector struct {
	election *pawl.Election
	o        Options
	ended    chan struct{}
}

// NewElector returns an elector for gocron.WithDistributedElector. It campaigns in the
// background until ctx ends; then the next instance leads. Wait for Done before you close
// the client.
//
// The elector uses RetryFor and Skipped of the options, and o may be nil. gocron does not
// pass the job to an elector, so Skipped gets "".
func NewElector(ctx context.Context, e *pawl.Election, o *Options) *Elector {
	el := &Elector{election: e, o: o.withDefaults(), ended: make(chan struct{})}
	go func() {
		defer close(el.ended)
		_ = e.Run(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	return el
}

// IsLeader implements gocron.Elector: it returns nil on the instance that leads, and
// otherwise the error of Err. While the backend does not answer, it retries for
// Options.RetryFor.
func (e *Elector) IsLeader(ctx context.Context) error {
	err := e.o.retry(ctx, e.ended, e.Err)
	if err != nil {
		e.o.Skipped("", err)
	}
	return err
}

// Err returns why this instance does not lead, like [pawl.Election.Status], or nil while
// it leads. After Done it returns why the elector has stopped campaigning.
func (e *Elector) Err() error { return e.election.Status() }

// Done is closed when the elector has stopped campaigning.
func (e *Elector) Done() <-chan struct{} { return e.ended }
