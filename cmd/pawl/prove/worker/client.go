package worker

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// A Client is a client of a lock, as a process of a user opens one.
type Client interface {
	// Claim waits until it holds the name, or until ctx ends. With try it does not wait.
	Claim(ctx context.Context, name history.Name, mode string, weight int, try bool) (Lease, error)

	// All waits until it holds all of the names. It returns a lease for each.
	All(ctx context.Context, names []history.Name) ([]Lease, error)

	// Lead waits until it is the leader, calls f, which releases the lease, and returns.
	Lead(ctx context.Context, name history.Name, f func(lease Lease)) error

	// AnswerOf says what an error of Claim or All means: [history.Held],
	// [history.TimedOut] or [history.Unknown].
	AnswerOf(err error) string

	// Lost reports whether an error of Release means that the lease was over before.
	Lost(err error) bool

	// Close releases what is held.
	Close() error
}

// A Limiter is a client that can limit the time for which its claims are held. After that
// time the holder has lost its lease, even if it still works.
type Limiter interface {
	WithMaxHold(d time.Duration) Client
}

// A Lease is a granted claim.
type Lease interface {
	Fence() uint64
	Err() error            // nil while it is held, as far as the lock knows
	Done() <-chan struct{} // closed when it is lost
	Release(ctx context.Context) error
}

// An Opener opens a client. It tries again while the database cannot be reached.
type Opener func(ctx context.Context, c *Config, client int) (Client, error)
