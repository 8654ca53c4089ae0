package goredislock

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/internal/redisscript"
)

// sender sends the scripts through go-redis. It is a redisscript.Sender.
type sender struct {
	client  redis.UniversalClient
	cluster *redis.ClusterClient // nil for another kind of client
	where   string
}

// noRetryCmd is a command that go-redis does not send again after an error of the
// network, whatever its MaxRetries, because the second answer to a release that is sent
// twice says that the token held nothing.
type noRetryCmd struct{ *redis.Cmd }

// NoRetry is called by go-redis.
func (noRetryCmd) NoRetry() bool { return true }

// command makes a command that runs a script by its SHA, or by its text.
func command(ctx context.Context, verb, script string, c redisscript.Call) noRetryCmd {
	args := make([]any, 0, 3+len(c.Keys)+len(c.Args))
	args = append(args, verb, script, len(c.Keys))
	for _, k := range c.Keys {
		args = append(args, k)
	}
	for _, a := range c.Args {
		args = append(args, a)
	}
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(3) // for the slot
	return noRetryCmd{cmd}
}

// Run implements redisscript.Sender.
func (s *sender) Run(ctx context.Context, script *redisscript.Script, c redisscript.Call) redisscript.Reply {
	cmd := command(ctx, "evalsha", script.SHA, c)
	_ = s.client.Process(ctx, cmd) // the error is in the command, too
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		cmd = command(ctx, "eval", script.Source, c)
		_ = s.client.Process(ctx, cmd)
	}
	return reply(cmd.Cmd)
}

// RunAll implements redisscript.Sender.
func (s *sender) RunAll(ctx context.Context, script *redisscript.Script, calls []redisscript.Call) []redisscript.Reply {
	cmds := make([]noRetryCmd, len(calls))
	p := s.client.Pipeline()
	for i, c := range calls {
		cmds[i] = command(ctx, "evalsha", script.SHA, c)
		_ = p.Process(ctx, cmds[i])
	}
	_, err := p.Exec(ctx) // the commands also have the error, unless a new connection was refused
	replies := make([]redisscript.Reply, len(calls))
	for i, cmd := range cmds {
		switch {
		case redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT"):
			replies[i] = s.Run(ctx, script, calls[i])
		case err != nil && cmd.Err() == nil && cmd.Val() == nil:
			replies[i] = redisscript.Reply{Err: err}
		default:
			replies[i] = reply(cmd.Cmd)
		}
	}
	return replies
}

var errAnswer = errors.New("the server answered something else than a script does")

func reply(cmd *redis.Cmd) redisscript.Reply {
	v, err := cmd.Result()
	if err != nil {
		return redisscript.Reply{Err: err}
	}
	switch v := v.(type) {
	case int64:
		return redisscript.Reply{Int: v}
	case string:
		if v != "" {
			return redisscript.Reply{Text: v}
		}
	case []any:
		list := make([]int64, len(v))
		for i, e := range v {
			n, ok := e.(int64)
			if !ok {
				return redisscript.Reply{Err: errAnswer}
			}
			list[i] = n
		}
		return redisscript.Reply{List: list}
	}
	return redisscript.Reply{Err: errAnswer}
}

// Scan implements redisscript.Sender.
func (s *sender) Scan(ctx context.Context, pattern string, f func(keys []string)) error {
	if s.cluster == nil {
		return scan(ctx, s.client, pattern, f)
	}
	var mu sync.Mutex // ForEachMaster calls the function in several goroutines
	return s.cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		return scan(ctx, node, pattern, func(keys []string) {
			mu.Lock()
			defer mu.Unlock()
			f(keys)
		})
	})
}

func scan(ctx context.Context, node redis.Cmdable, pattern string, f func(keys []string)) error {
	for cursor := uint64(0); ; {
		keys, next, err := node.Scan(ctx, cursor, pattern, 1000).Result()
		if err != nil {
			return err
		}
		f(keys)
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// Patience implements redisscript.Punctual. go-redis waits for a connection no longer
// than ctx. After that it follows its own ReadTimeout, unless its options make it follow
// ctx.
func (s *sender) Patience() time.Duration {
	c, ok := s.client.(*redis.Client)
	switch {
	case !ok:
		return math.MaxInt64
	case c.Options().ContextTimeoutEnabled:
		return 0
	case c.Options().ReadTimeout <= 0: // waits without end
		return math.MaxInt64
	}
	return c.Options().ReadTimeout
}

// Idle implements redisscript.Pooled. go-redis checks whether an idle connection is dead
// before it uses it, but not through TLS.
func (s *sender) Idle() int { return int(s.client.PoolStats().IdleConns) }

// Cluster implements redisscript.Sender.
func (s *sender) Cluster() bool { return s.cluster != nil }

// Where implements redisscript.Sender.
func (s *sender) Where() string { return s.where }

// Close implements redisscript.Sender. The caller closes the client.
func (s *sender) Close() error { return nil }

var _ redisscript.Sender = (*sender)(nil)
