package goredislock

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/internal/redisscript"
)

var errUnknownNode = errors.New("the name was moved to a node that is not known yet")

// Confirm implements redisscript.Sender. go-redis sends a pipeline on one connection,
// which no other request uses until the pipeline is answered; and go-redis follows no
// redirection of a pipeline to one node.
func (s *sender) Confirm(ctx context.Context, c redisscript.Confirmation) (redisscript.Reply, int) {
	on, err := s.node(ctx, c)
	if err != nil {
		return redisscript.Reply{Err: err}, 0
	}
	if node, ok := on.(*redis.Client); ok && node.Options().ReadTimeout > 0 { // the client would give up on the answer
		c.Timeout = min(c.Timeout, node.Options().ReadTimeout*3/4)
	}
	send := func(verb, script string) (*redis.Cmd, *redis.IntCmd) {
		p := on.Pipeline()
		if c.Asking {
			p.Do(ctx, "asking")
		}
		cmd := command(ctx, verb, script, c.Call)
		_ = p.Process(ctx, cmd)
		wait := redis.NewIntCmd(ctx, "wait", c.Replicas, c.Timeout.Milliseconds())
		_ = p.Process(ctx, wait)
		_, _ = p.Exec(ctx) // the errors are in the commands, too
		return cmd.Cmd, wait
	}
	cmd, wait := send("evalsha", c.Script.SHA)
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		cmd, wait = send("eval", c.Script.Source)
	}
	p := reply(cmd)
	if p.Err == nil {
		p.Err = wait.Err()
	}
	return p, int(wait.Val())
}

func (s *sender) node(ctx context.Context, c redisscript.Confirmation) (redis.UniversalClient, error) {
	if s.cluster == nil {
		return s.client, nil
	}
	if c.Server == "" {
		return s.cluster.MasterForKey(ctx, c.Keys[0])
	}
	var mu sync.Mutex // ForEachMaster calls the function in several goroutines
	var found *redis.Client
	err := s.cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		if node.Options().Addr == c.Server {
			mu.Lock()
			defer mu.Unlock()
			found = node
		}
		return nil
	})
	if found == nil && err == nil {
		err = errUnknownNode
	}
	return found, err
}
