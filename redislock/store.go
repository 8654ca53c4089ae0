package redislock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/internal/redisscript"
)

// conn is a redisscript.Conn over rueidis.
//
// In rueidis, the only caller on a connection sends its command and reads the answer
// itself, until the server pushes a message there. Then each command passes through two
// more goroutines. So a driver that is opened by URL has a second client for messages.
type conn struct {
	client          rueidis.Client
	push            rueidis.Client     // the client for pushed messages, maybe the same one
	location        string             // names the server for people
	untrackedReason string             // why there is no tracking; empty with tracking
	end             context.CancelFunc // ends the dials; nil if the caller has opened the client
}

// close closes the clients that the driver has opened.
func (s *conn) close() {
	s.end()
	if s.client != nil {
		s.client.Close()
	}
	if s.push != nil {
		s.push.Close()
	}
}

func (s *conn) cluster() bool { return s.client.Mode() == rueidis.ClientModeCluster }

// Do implements redisscript.Conn. Unless a command is marked as read-only, rueidis sends
// it only once, regardless of its retry options.
func (s *conn) Do(ctx context.Context, c redisscript.Command) redisscript.Reply {
	p := redisscript.ReplyOf(s.client.Do(ctx, s.build(c)).ToAny())
	if c.Keys == nil {
		p.Err = restoreERR(p.Err)
	}
	return p
}

// build makes the command. For a command that may block, rueidis takes a connection from
// its pool, and reads the answer in the caller's goroutine.
func (s *conn) build(c redisscript.Command) rueidis.Completed {
	b := s.client.B().Arbitrary(c.Words...).Keys(c.Keys...).Args(c.Args...)
	if c.OwnConn {
		return b.Blocking()
	}
	return b.Build()
}

// DoMany implements redisscript.Conn. rueidis keeps the order of commands for one node.
// It usually sends the commands of all goroutines on one connection. But it sends a batch
// that has a blocking command on a connection of its pool.
func (s *conn) DoMany(ctx context.Context, all []redisscript.Command, together bool) []redisscript.Reply {
	cmds := make(rueidis.Commands, len(all))
	for i, c := range all {
		cmds[i] = s.build(c)
	}
	var results []rueidis.RedisResult
	if together && s.cluster() { // the client would redirect the first command only; a dedicated client redirects none
		_ = s.client.Dedicated(func(d rueidis.DedicatedClient) error {
			results = d.DoMulti(ctx, cmds...)
			if slices.ContainsFunc(results, func(r rueidis.RedisResult) bool { return r.NonRedisError() != nil }) {
				d.Close() // otherwise the next batch would wait until the server ends this WAIT
			}
			return nil
		})
	} else {
		results = s.client.DoMulti(ctx, cmds...)
	}
	replies := make([]redisscript.Reply, len(all))
	for i, r := range results {
		replies[i] = redisscript.ReplyOf(r.ToAny())
	}
	return replies
}

// nodes implements redisscript.Client.Nodes. With Sentinel it returns the current master.
func (s *conn) nodes(ctx context.Context, mastersOnly bool) (all []redisscript.Node, _ error) {
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
		if mastersOnly {
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

// restoreERR adds the ERR that rueidis removes from the start of an error, because the
// doctor recognizes an answer of the server by a word in capitals at the start.
func restoreERR(err error) error {
	redisErr, answered := rueidis.IsRedisErr(err)
	if !answered {
		return err
	}
	if first, _, _ := strings.Cut(redisErr.Error(), " "); first == strings.ToUpper(first) {
		return err
	}
	return fmt.Errorf("ERR %w", err)
}
