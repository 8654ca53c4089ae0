package goredislock

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/internal/redisscript"
)

// conn is a redisscript.Conn over go-redis.
type conn struct {
	client   redis.UniversalClient
	cluster  *redis.ClusterClient // nil for another kind of client
	location string               // names the server for people
}

// noRetryCmd is a command that go-redis does not repeat after a network error, regardless
// of MaxRetries. Otherwise the answer to a repeated release would say that the token held
// nothing.
type noRetryCmd struct{ *redis.Cmd }

// NoRetry makes go-redis send the command only once.
func (noRetryCmd) NoRetry() bool { return true }

func command(ctx context.Context, c redisscript.Command) noRetryCmd {
	args := make([]any, 0, len(c.Words)+len(c.Keys)+len(c.Args))
	for _, part := range [...][]string{c.Words, c.Keys, c.Args} {
		for _, word := range part {
			args = append(args, word)
		}
	}
	cmd := redis.NewCmd(ctx, args...)
	if len(c.Keys) > 0 {
		cmd.SetFirstKeyPos(int8(len(c.Words))) // for the slot
	}
	return noRetryCmd{cmd}
}

// Do implements redisscript.Conn.
func (s *conn) Do(ctx context.Context, c redisscript.Command) redisscript.Reply {
	cmd := command(ctx, c)
	_ = s.client.Process(ctx, cmd) // cmd has the error, too
	return redisscript.ReplyOf(cmd.Result())
}

// DoMany implements redisscript.Conn. go-redis sends a pipeline to one node, on one
// connection that no other request uses meanwhile, and follows no redirection.
func (s *conn) DoMany(ctx context.Context, all []redisscript.Command, together bool) []redisscript.Reply {
	replies, target := make([]redisscript.Reply, len(all)), s.client
	var err error
	if together && s.cluster != nil {
		first := slices.IndexFunc(all, func(c redisscript.Command) bool { return c.Keys != nil })
		target, err = s.cluster.MasterForKey(ctx, all[first].Keys[0])
	}
	cmds := make([]noRetryCmd, len(all))
	for i, c := range all {
		cmds[i] = command(ctx, c)
	}
	if err == nil {
		p := target.Pipeline()
		for _, cmd := range cmds {
			_ = p.Process(ctx, cmd)
		}
		_, err = p.Exec(ctx) // the commands also have the error, unless a new connection was refused
	}
	for i, cmd := range cmds {
		if err != nil && cmd.Err() == nil && cmd.Val() == nil {
			replies[i] = redisscript.Reply{Err: err}
		} else {
			replies[i] = redisscript.ReplyOf(cmd.Result())
		}
	}
	return replies
}

// nodes implements redisscript.Client.Nodes. With Sentinel it returns the current master.
func (s *conn) nodes(ctx context.Context, mastersOnly bool) ([]redisscript.Node, error) {
	if s.cluster == nil {
		return []redisscript.Node{{Name: s.location, Conn: s}}, nil
	}
	forEach := s.cluster.ForEachShard
	if mastersOnly {
		forEach = s.cluster.ForEachMaster
	}
	var mu sync.Mutex // several goroutines call the function
	var all []redisscript.Node
	err := forEach(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, redisscript.Node{Name: node.Options().Addr, Conn: &conn{client: node}})
		return nil
	})
	slices.SortFunc(all, func(a, b redisscript.Node) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}
