package redislock

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/internal/redisscript"
)

// waitingAtOnce is how many grants may wait for replicas at the same time, for each server; further ones wait for these.
const waitingAtOnce = 64

// Confirm implements redisscript.Sender. WAIT blocks its connection, and rueidis sends everybody's commands on one. So it is sent on
// one of those that rueidis keeps for blocking commands, and so is the script that it is about.
func (s *sender) Confirm(ctx context.Context, c redisscript.Confirmation) (redisscript.Reply, int) {
	on := s.client
	if c.Server != "" {
		node, known := s.client.Nodes()[c.Server]
		if !known {
			return redisscript.Reply{Err: errUnknownNode}, 0
		}
		on = node
	}
	p, replicas := redisscript.Reply{}, 0
	err := on.Dedicated(func(d rueidis.DedicatedClient) error {
		b := s.client.B()
		p, replicas = s.confirm(ctx, d, c, b.Evalsha().Sha1(c.Script.SHA).Numkeys(int64(len(c.Keys))).Key(c.Keys...).Arg(c.Args...).Build())
		if err, is := rueidis.IsRedisErr(p.Err); is && err.IsNoScript() {
			p, replicas = s.confirm(ctx, d, c, s.eval(c.Script, c.Call))
		}
		return nil
	})
	if p.Err == nil {
		p.Err = err
	}
	return p, replicas
}

func (s *sender) confirm(ctx context.Context, on rueidis.DedicatedClient, c redisscript.Confirmation, script rueidis.Completed) (redisscript.Reply, int) {
	cmds := rueidis.Commands{script, on.B().Wait().Numreplicas(int64(c.Replicas)).Timeout(c.Timeout.Milliseconds()).Build()}
	if c.Asking {
		cmds = append(rueidis.Commands{on.B().Asking().Build()}, cmds...)
	}
	results := on.DoMulti(ctx, cmds...)
	for _, r := range results {
		if r.NonRedisError() != nil {
			on.Close() // the server may be waiting still, and the next one would wait behind it
			return redisscript.Reply{Err: r.NonRedisError()}, 0
		}
	}
	p := reply(results[len(results)-2])
	n, err := results[len(results)-1].AsInt64()
	if p.Err == nil {
		p.Err = err
	}
	return p, int(n)
}
