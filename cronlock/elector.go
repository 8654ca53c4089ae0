package cronlock

import (
	"context"

	"github.com/pawl-go/pawl"
)

// Elector has all jobs of a scheduler run on the instance that leads. A tick in
// the instant in which the lead changes may be run by neither instance, and where their
// clocks differ by both: where that must not be, use a locker or a [Job].
type Elector struct {
	election *pawl.Election
	o        Options
	ended    chan struct{}
}

// NewElector returns what gocron.WithDistributedElector takes. It campaigns in the
// background until ctx ends, which gives the lead to the next instance; wait for Done
// before the client is closed.
//
// Of the options, RetryFor and Skipped are heeded, and o may be nil. gocron does not tell
// an elector which job it asks for, so Skipped is told of "".
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
// otherwise what Err does. While the backend cannot be asked it waits, for as long as
// RetryFor says.
func (e *Elector) IsLeader(ctx context.Context) error {
	err := e.o.again(ctx, e.ended, e.Err)
	if err != nil {
		e.o.Skipped("", err)
	}
	return err
}

// Err says why this instance does not lead, as [pawl.Election.Err] does: it is nil while
// it leads. After Done it is why the elector campaigns no more.
func (e *Elector) Err() error { return e.election.Err() }

// Done is closed when the elector campaigns no more.
func (e *Elector) Done() <-chan struct{} { return e.ended }
