package redisscript

import (
	"context"
	"time"
)

// A Sender is a client of Redis. Its methods may be called from many goroutines at once.
type Sender interface {
	// Run runs a script on the keys of one name, and sends its text if the server does
	// not know it. After an error of the connection it does not send again, because the
	// second answer to a release would say that the token held nothing. It follows
	// redirections of a cluster. It may take longer than ctx, see boundedSender.
	Run(ctx context.Context, s *Script, c Call) Reply

	// RunAll runs a script on several names, pipelined. The calls of one name are run in
	// order.
	RunAll(ctx context.Context, s *Script, calls []Call) []Reply

	// Confirm runs a script, and then WAIT on the same connection, with no other
	// request's command in between or behind. It returns the reply of the script, and how
	// many replicas have acknowledged it. It follows no redirection.
	Confirm(ctx context.Context, c Confirmation) (Reply, int)

	// Scan calls f with the keys that match a pattern, on each master. f may get a key
	// twice.
	Scan(ctx context.Context, pattern string, f func(keys []string)) error

	// Servers returns the servers that keep the keys, so that each can be asked by
	// itself: one server, or the nodes of a cluster with their replicas.
	Servers(ctx context.Context) ([]Server, error)

	// Receive subscribes to a channel and calls heard with each message, and subscribed
	// each time the server has confirmed the subscription, until ctx ends or the
	// subscription is lost. Neither function may block. Receive unsubscribes before it
	// returns, if it can still reach the server.
	Receive(ctx context.Context, c Channel, subscribed func(), heard func(message string)) error

	// Cluster reports whether this is a client of a cluster, where channels belong to
	// slots.
	Cluster() bool

	// Where names the server for people, without a password.
	Where() string

	// Close frees what was opened for this driver only.
	Close() error
}

// A Punctual Sender ends Run by itself, by closing the connection: at the deadline of
// ctx, or when the server has sent nothing for the sender's patience, whichever is later.
// It does not always do so when ctx is cancelled.
type Punctual interface {
	Patience() time.Duration
}

// An Interruptible Sender can end a request that waits alone on a connection for its
// answer, by closing that connection.
type Interruptible interface {
	// Interruptible reports whether the Sender can do so. With some clients that we did
	// not open it cannot.
	Interruptible() bool

	// Waiting notes which connections wait for an answer. interrupt closes each of these
	// connections that still waits for the same answer.
	Waiting() (interrupt func())
}

// An Aside Sender can run a script on a connection that has no other requests meanwhile.
type Aside interface {
	RunAside(ctx context.Context, s *Script, c Call) Reply
}

// A Pooled Sender keeps idle connections, and may notice that one is dead only when it
// sends something on it.
type Pooled interface {
	Idle() int // how many connections are idle
}

// A Server is a server that keeps keys, or a Sentinel.
type Server struct {
	Name string // for people: its address

	// Do sends a command about the server itself, and returns its answer as text, with
	// one line for each element of a list or a map.
	Do func(ctx context.Context, command ...string) (string, error)
}

// An Authenticated Sender knows its user (the default user if the name is empty), and
// whether it gives a password.
type Authenticated interface {
	User() (name string, password bool)
}

// A Guarded Sender knows the Sentinels of its master, and the name under which they know
// that master.
type Guarded interface {
	Sentinels() (group string, all []Server)
}

// A Channel is a channel of Pub/Sub.
type Channel struct {
	Name    string
	Sharded bool // it belongs to a slot of a cluster
	Brief   bool // the driver may leave the channel before Close, and Receive then unsubscribes
}

// A Call has the keys and the arguments of a script.
type Call struct {
	Keys []string
	Args []string
}

// A Reply is the answer of a script: a number, bytes, or a list of numbers.
type Reply struct {
	Int  int64
	Text string
	List []int64
	Err  error
}
