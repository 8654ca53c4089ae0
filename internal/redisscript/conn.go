package redisscript

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Conn sends commands to Redis, through rueidis or go-redis. Many goroutines may use
// it. Do and DoMany may return later than the end of ctx, see bounded.
type Conn interface {
	// Do sends a command, in a cluster to the server that has its keys, and follows
	// redirections. It does not repeat a command after an error of the connection,
	// because the answer to a repeated release would say that the token held nothing.
	Do(ctx context.Context, c Command) Reply

	// DoMany sends several commands in one pipeline, in order for each server. With
	// together, it sends all of them on one connection to the server of the first key,
	// without commands of other requests in between, and follows no redirection.
	DoMany(ctx context.Context, all []Command, together bool) []Reply

	// Subscribe subscribes to a channel until ctx ends or the subscription is lost. It
	// calls subscribed each time the server has confirmed the subscription, and onMessage
	// with each message. Neither function may block. Subscribe unsubscribes before it
	// returns, if it can still reach the server.
	Subscribe(ctx context.Context, c Channel, subscribed func(), onMessage func(message string)) error
}

// A Client is a Conn, and the abilities of its library and its server.
type Client struct {
	Conn
	Location string // names the server for people, without a password
	Cluster  bool   // the servers are a cluster: keys and channels belong to slots

	// Nodes returns each server that keeps keys: one server, or the nodes of a cluster,
	// with their replicas unless mastersOnly is set.
	Nodes func(ctx context.Context, mastersOnly bool) ([]Node, error)

	// MinTimeout is the least time that a request gets: Do closes the connection at the
	// deadline of ctx, but no sooner than MinTimeout after the request began.
	MinTimeout time.Duration

	// ReadTimeout is the time after which the library gives up waiting for an answer; 0
	// means never.
	ReadTimeout time.Duration

	// IdleConns returns the number of idle connections. The library may detect a dead
	// connection only when it sends a request. IdleConns is nil for a library that has
	// one connection for all requests.
	IdleConns func() int

	// RecordWaiting records which connections wait for an answer; interrupt closes those
	// that still wait for the same answer. It is nil if the library cannot do that.
	RecordWaiting func() (interrupt func())

	// Watch makes the server report the next change of each key by another client (client
	// tracking). The report calls [Driver.Invalidated]. Watch returns a result for each
	// key, in order. It is nil if the server does not report changes; UntrackedReason
	// then says why, for people.
	Watch           func(ctx context.Context, keys []string) []WatchReply
	UntrackedReason string

	// Password is set if the client gives a password for the default user.
	Password bool

	// Sentinels are the Sentinels of the master. MasterSet is their name for it.
	Sentinels []Node
	MasterSet string

	// Close, if not nil, closes the connections that were opened for this driver only.
	Close func()
}

// A Node is a server that keeps keys, or a Sentinel.
type Node struct {
	Name string // for people: its address
	Conn
}

// ask sends a command without keys. It returns the answer as text, with one line for each
// element of a list or a map.
func (n Node) ask(ctx context.Context, words ...string) (string, error) {
	p := n.Do(ctx, Command{Words: words})
	if errors.Is(p.Err, errEmpty) {
		p.Err = nil
	}
	if p.Words != nil {
		return strings.Join(p.Words, "\n") + "\n", p.Err
	}
	return p.Text, p.Err
}

// A Command is a command of Redis: words, then keys, then arguments.
type Command struct {
	Words []string
	Call
}

// A Call has the keys and the arguments of a script.
type Call struct {
	Keys    []string
	Args    []string
	OwnConn bool // prefer a connection without other requests; WAIT requires one
	oneName bool // all keys belong to one name
}

// A Channel is a channel of Pub/Sub.
type Channel struct {
	Name      string
	Sharded   bool // it belongs to a slot of a cluster
	Temporary bool // the driver may unsubscribe before Close
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

// ReplyOf makes a Reply of an answer as the libraries decode it, with slices and maps.
func ReplyOf(answer any, err error) (p Reply) {
	if err != nil {
		return Reply{Err: err}
	}
	switch v := answer.(type) {
	case int64:
		p.Int = v
	case string:
		if p.Text = v; v == "" {
			p.Err = errEmpty
		}
	case []any:
		p.List = make([]int64, 0, len(v))
		for _, e := range v {
			n, ok := e.(int64)
			if !ok {
				p.List, p.Words = nil, words(v)
				break
			}
			p.List = append(p.List, n)
		}
	default:
		p.Words = words(v)
	}
	return p
}

// words returns the elements of an answer, including those of nested lists and maps.
func words(v any) (all []string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			all = append(all, words(e)...)
		}
	case map[any]any:
		for k, e := range v {
			all = append(append(all, words(k)...), words(e)...)
		}
	case map[string]any:
		for k, e := range v {
			all = append(append(all, k), words(e)...)
		}
	case nil:
		all = []string{""}
	default:
		all = []string{fmt.Sprint(v)}
	}
	return all
}

// errEmpty is the error of an empty answer, which no script returns.
var errEmpty = errors.New("the server's answer is empty")

// WatchReply is the result of Watch for a key: its value when the server began to watch
// it, or an error.
type WatchReply struct {
	State string // empty if the key has no value, or one that Pawl did not write
	Err   error
}
