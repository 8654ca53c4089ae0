package redisscript

import (
	"context"
	"errors"
	"strings"
	"time"
)

// A Conn sends commands to Redis, through rueidis or go-redis. Its methods may be called
// from many goroutines at once. Do and DoMany may take longer than ctx, see bounded.
type Conn interface {
	// Do sends a command, in a cluster to the server that has its keys, and follows
	// redirections. After an error of the connection it does not send again, because the
	// second answer to a release would say that the token held nothing.
	Do(ctx context.Context, c Command) Reply

	// DoMany sends several commands in one pipeline, in order for each server. With
	// together, it sends them to the server that has the first key, on one connection,
	// with no other request's command in between or behind, and follows no redirection.
	DoMany(ctx context.Context, all []Command, together bool) []Reply

	// Subscribe subscribes to a channel and calls heard with each message, and subscribed
	// each time the server has confirmed the subscription, until ctx ends or the
	// subscription is lost. Neither function may block. Subscribe unsubscribes before it
	// returns, if it can still reach the server.
	Subscribe(ctx context.Context, c Channel, subscribed func(), heard func(message string)) error
}

// A Client is a Conn, and what its library and its server can do.
type Client struct {
	Conn
	Where   string // names the server for people, without a password
	Cluster bool   // channels belong to slots

	// Nodes returns the servers that keep the keys, so that each can be asked by itself:
	// one server, or the nodes of a cluster, with their replicas unless masters is set.
	Nodes func(ctx context.Context, masters bool) ([]Node, error)

	// Do gives up, by closing the connection, at the deadline of ctx, but no sooner than
	// Patience after it began.
	Patience time.Duration

	// ReadTimeout is the time after which the library gives up waiting for an answer; 0
	// means never.
	ReadTimeout time.Duration

	// Idle returns the number of idle connections. The library may notice that one is
	// dead only when it sends something. It is nil for a library that has one connection
	// for all requests.
	Idle func() int

	// Waiting notes which connections wait for an answer. interrupt closes each of these
	// connections that still waits for the same answer. Waiting is nil if the library
	// offers no way to do so.
	Waiting func() (interrupt func())

	// Watch makes the server report the next change of each key by another client (client
	// tracking), with a call of [Driver.Invalidated]. It answers per key, in order. It is
	// nil if the server does not report changes; then Untracked says why, for people.
	Watch     func(ctx context.Context, keys []string) []Armed
	Untracked string

	// Password is set if the client gives a password for the default user.
	Password bool

	// Sentinels are those that watch the master. MasterSet is their name for it.
	Sentinels []Node
	MasterSet string

	// Close, if not nil, frees what was opened for this driver only.
	Close func()
}

// A Node is a server that keeps keys, or a Sentinel.
type Node struct {
	Name string // for people: its address
	Conn
}

// ask sends a command about the server itself. It returns the answer as text, with one
// line for each element of a list or a map.
func (n Node) ask(ctx context.Context, words ...string) (string, error) {
	p := n.Do(ctx, Command{Words: words})
	if errors.Is(p.Err, ErrEmpty) {
		p.Err = nil
	}
	if p.Words != nil {
		return strings.Join(p.Words, "\n") + "\n", p.Err
	}
	return p.Text, p.Err
}

// A Command is a command of Redis: words, and behind them keys and arguments.
type Command struct {
	Words []string
	Call
	Aside bool // best sent on a connection that has no other requests meanwhile; WAIT has to be
}

// A Call has the keys and the arguments of a script.
type Call struct {
	Keys []string
	Args []string
}

// A Channel is a channel of Pub/Sub.
type Channel struct {
	Name    string
	Sharded bool // it belongs to a slot of a cluster
	Brief   bool // the driver may leave the channel before Close, and Subscribe then unsubscribes
}

// A Reply is an answer of the server: a number, text, a list of numbers, or the elements
// of any other list or map, including nested ones.
type Reply struct {
	Int   int64
	Text  string
	List  []int64
	Words []string
	Err   error
}

// ErrEmpty is the error of an answer without content. No script answers that.
var ErrEmpty = errors.New("the server answered nothing to a script")

// Armed is the value of a key at the time when the server begins to watch it, or the
// error if it does not.
type Armed struct {
	State string // empty if the key has no value, or none of ours
	Err   error
}
