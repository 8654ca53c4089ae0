package redislock

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/internal/redisscript"
)

// nodes implements redisscript.Client.Nodes. With Sentinel it returns the current master.
func (s *conn) nodes(ctx context.Context, masters bool) (all []redisscript.Node, _ error) {
	nodes := s.client.Nodes()
	if !s.cluster() {
		name := s.location
		if len(nodes) == 1 {
			name = slices.Collect(maps.Keys(nodes))[0]
		}
		return []redisscript.Node{{Name: name, Conn: s}}, nil
	}
	for _, addr := range slices.Sorted(maps.Keys(nodes)) {
		node := nodes[addr]
		if masters {
			role := redisscript.ReplyOf(node.Do(ctx, node.B().Role().Build()).ToAny())
			if role.Err != nil {
				return nil, role.Err
			}
			if len(role.Words) == 0 || role.Words[0] != "master" {
				continue
			}
		}
		all = append(all, redisscript.Node{Name: addr, Conn: &conn{client: node, push: node}})
	}
	return all, nil
}

// A sentinel sends requests on a connection of its own, because rueidis does not share
// its connection to the Sentinel.
type sentinel struct {
	redisscript.Conn // has no other methods
	options          rueidis.ClientOption
}

// sentinels returns the Sentinels of a client, if any, and their name for the master.
func sentinels(o *rueidis.ClientOption) (all []redisscript.Node, group string) {
	if o.Sentinel.MasterSet == "" {
		return nil, ""
	}
	options := *o
	options.Username, options.Password, options.ClientName = o.Sentinel.Username, o.Sentinel.Password, o.Sentinel.ClientName
	options.SelectDB, options.Sentinel = 0, rueidis.SentinelOption{}
	options.ForceSingleClient, options.DisableCache = true, true
	options.Dialer.Timeout = min(options.Dialer.Timeout, time.Second)
	for _, addr := range o.InitAddress {
		options.InitAddress = []string{addr}
		all = append(all, redisscript.Node{Name: addr, Conn: sentinel{options: options}})
	}
	return all, o.Sentinel.MasterSet
}

// Do implements redisscript.Conn.
func (s sentinel) Do(ctx context.Context, c redisscript.Command) redisscript.Reply {
	client, err := rueidis.NewClient(s.options)
	if err != nil {
		return redisscript.Reply{Err: err}
	}
	defer client.Close()
	return (&conn{client: client}).Do(ctx, c)
}
