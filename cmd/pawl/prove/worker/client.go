package worker

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// A Client is a client of a lock service, which a process of a user would open.
type Client interface {
	// Claim waits until it holds the name, or until ctx ends. With try it does not wait.
	Claim(ctx context.Context, name history.Name, mode string, weight int, try bool) (Lease, error)

	// All waits until it holds all of the names. It returns a lease for each.
	All(ctx context.Context, names []history.Name) ([]Lease, error)

	// Lead waits until it is the leader, calls f, which releases the lease, and returns.
	Lead(ctx context.Context, name history.Name, f func(lease Lease)) error

	// AnswerOf returns the answer for an error of Claim or All: [history.Held],
	// [history.TimedOut] or [history.Unknown].
	AnswerOf(err error) string

	// Lost reports whether an error of Release means that the lease was over before.
	Lost(err error) bool

	// Close releases all leases and closes the client.
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
	Err() error            // nil while the client believes that the lease is held
	Done() <-chan struct{} // closed when the lease is lost
	Release(ctx context.Context) error
}

// An Opener opens a client. It retries while the database is unreachable.
type Opener func(ctx context.Context, c *Config, client int) (Client, error)
