package redislock

import (
	"context"
	"slices"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/internal/redisscript"
)

// waitingAtOnce is the number of grants that may wait for replicas of one server at the
// same time. Further grants wait for a free connection.
const waitingAtOnce = 64

// Confirm implements redisscript.Sender. WAIT blocks its connection, and rueidis usually
// sends the commands of all goroutines on one connection. But it has a pool of
// connections for blocking commands, and sends the whole of a batch with such a command
// on one of these.
func (s *sender) Confirm(ctx context.Context, c redisscript.Confirmation) (p redisscript.Reply, replicas int) {
	script := s.client.B().Evalsha().Sha1(c.Script.SHA).Numkeys(int64(len(c.Keys))).Key(c.Keys...).Arg(c.Args...).Build()
	p, replicas = s.confirm(ctx, c, script)
	if err, is := rueidis.IsRedisErr(p.Err); is && err.IsNoScript() {
		p, replicas = s.confirm(ctx, c, s.eval(c.Script, c.Call))
	}
	return p, replicas
}

func (s *sender) confirm(ctx context.Context, c redisscript.Confirmation, script rueidis.Completed) (redisscript.Reply, int) {
	b := s.client.B()
	cmds := rueidis.Commands{script, b.Wait().Numreplicas(int64(c.Replicas)).Timeout(c.Timeout.Milliseconds()).Build()}
	if c.Asking {
		cmds = append(rueidis.Commands{b.Asking().Build()}, cmds...)
	}
	var results []rueidis.RedisResult
	switch {
	case c.Server != "":
		node, known := s.client.Nodes()[c.Server]
		if !known {
			return redisscript.Reply{Err: errUnknownNode}, 0
		}
		results = node.DoMulti(ctx, cmds...)
	case s.Cluster(): // the client would redirect the script without the WAIT; a dedicated one redirects neither
		_ = s.client.Dedicated(func(d rueidis.DedicatedClient) error {
			results = d.DoMulti(ctx, cmds...)
			if slices.ContainsFunc(results, func(r rueidis.RedisResult) bool { return r.NonRedisError() != nil }) {
				d.Close() // the server may still wait, and the next grant would wait behind it
			}
			return nil
		})
	default:
		results = s.client.DoMulti(ctx, cmds...)
	}
	p := reply(results[len(results)-2])
	n, err := results[len(results)-1].AsInt64()
	if p.Err == nil {
		p.Err = err
	}
	return p, int(n)
}
