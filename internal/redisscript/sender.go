package redisscript

import (
	"context"
	"time"
)

// A Sender is a client of Redis. Its methods may be called from many goroutines at once.
type Sender interface {
	// Run runs a script on the keys of one name, and sends its text along when the server
	// does not know it. An attempt is one attempt: it does not send again after an error
	// of the connection, for the release of a lease that is sent twice would say the
	// second time that nothing was held. Redirections of a cluster are followed. It may
	// take longer than ctx, see prompt.
	Run(ctx context.Context, s *Script, c Call) Reply

	// RunAll runs a script on several names, pipelined. The calls of one name are run in
	// order.
	RunAll(ctx context.Context, s *Script, calls []Call) []Reply

	// Confirm runs a script, and then WAIT on the same connection, which has no commands
	// of others in between or behind. It answers what the script did, and how many
	// replicas have it. It follows no redirection.
	Confirm(ctx context.Context, c Confirmation) (Reply, int)

	// Scan calls f with the keys that match a pattern, on each master. Keys may come
	// twice.
	Scan(ctx context.Context, pattern string, f func(keys []string)) error

	// Servers are those that keep the keys, each to be asked by itself: one, or the nodes
	// of a cluster, replicas too.
	Servers(ctx context.Context) ([]Server, error)

	// Receive subscribes to a channel and calls heard with each message, and subscribed
	// each time the server has confirmed the subscription, until ctx ends or the
	// subscription is lost. Neither may block. It leaves nothing subscribed when it
	// returns, if the server can be told.
	Receive(ctx context.Context, c Channel, subscribed func(), heard func(message string)) error

	// Cluster reports whether this is a client of a cluster, where channels belong to
	// slots.
	Cluster() bool

	// Where says which server this is, for people: without a password.
	Where() string

	// Close frees what was opened for this driver only.
	Close() error
}

// A Punctual Sender ends Run by itself, by closing the connection, though not always when
// its ctx is cancelled: at the deadline of that, or when the server has said nothing for
// its patience, whichever is later.
type Punctual interface {
	Patience() time.Duration
}

// An Interruptible Sender can end a request that waits for its answer alone on a
// connection, by closing that.
type Interruptible interface {
	// Interruptible reports whether it can: not all clients are opened by us.
	Interruptible() bool

	// Waiting notes which connections wait for an answer. What it returns ends the
	// waiting of those that by then still wait for the same one.
	Waiting() (interrupt func())
}

// An Aside Sender can run a script on a connection that has no requests of others
// meanwhile.
type Aside interface {
	RunAside(ctx context.Context, s *Script, c Call) Reply
}

// A Pooled Sender keeps connections idle, and may find out only when it sends something
// that they are dead.
type Pooled interface {
	Idle() int // how many of them there are
}

// A Server is one of those that keep the keys, or a Sentinel.
type Server struct {
	Name string // for people: its address

	// Do sends a command about the server itself, and returns its answer as text: of a
	// list or a map, each element in a line.
	Do func(ctx context.Context, command ...string) (string, error)
}

// An Authenticated Sender knows as which user it comes, the default one if it does not
// say, and whether it gives a password.
type Authenticated interface {
	User() (name string, password bool)
}

// A Guarded Sender knows the Sentinels that say who the master is, and the name that they
// have for it.
type Guarded interface {
	Sentinels() (group string, all []Server)
}

// A Channel is where messages come in.
type Channel struct {
	Name    string
	Sharded bool // it belongs to a slot of a cluster
	Brief   bool // it may end before the driver does, whose connections end with it
}

// A Call is what a script is run on.
type Call struct {
	Keys []string
	Args []string
}

// A Reply is what a script answered: a number, bytes, or a list of numbers.
type Reply struct {
	Int  int64
	Text string
	List []int64
	Err  error
}
