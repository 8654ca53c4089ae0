package redislock

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/internal/redisscript"
)

// Tracking passes the reports of the server to a driver that [New] makes. Then holders
// learn at once that another client has deleted or flushed their keys, or that the server
// has evicted them. Make it before the client, for one driver:
//
//	o := rueidis.ClientOption{InitAddress: []string{"localhost:6379"}}
//	tracking := redislock.Track(&o)
//	client, err := rueidis.NewClient(o)
//	d, err := redislock.New(client, &redislock.Options{Tracking: tracking})
type Tracking struct {
	driver atomic.Pointer[redisscript.Driver] // nil until the driver exists
}

// invalidated passes the keys of a report to the driver. rueidis' reading goroutine calls
// this function. messages is nil if the connection was lost, or the server has dropped
// its list of tracked keys.
func (t *Tracking) invalidated(messages []rueidis.RedisMessage) {
	var keys []string
	for i := range messages {
		if key, err := messages[i].ToString(); err == nil {
			keys = append(keys, key)
		}
	}
	if d := t.driver.Load(); d != nil {
		d.Invalidated(keys)
	}
}

// Track sets the client options for tracking:
//   - client-side caching in the OPTIN mode, without reports of the client's own changes;
//   - one connection for all pipelines;
//   - OnInvalidations, which also calls the previous function.
//
// It returns nil if o is nil.
func Track(o *rueidis.ClientOption) *Tracking {
	if o == nil {
		return nil // New makes a driver without tracking
	}
	t := &Tracking{}
	previous := o.OnInvalidations
	withTracking(o, t)
	o.PipelineMultiplex = -1
	if previous != nil {
		o.OnInvalidations = func(messages []rueidis.RedisMessage) {
			previous(messages)
			t.invalidated(messages)
		}
	}
	return t
}

// withTracking sets a client's options so that t gets the server's reports. With OPTIN,
// the server tracks only the keys that the client asks for. With NOLOOP, it does not
// report the client's own changes (for scripts only from Redis 7.0.5 on).
func withTracking(o *rueidis.ClientOption, t *Tracking) {
	o.DisableCache, o.ClientTrackingOptions = false, []string{"OPTIN", "NOLOOP"}
	o.OnInvalidations = t.invalidated
}

// watch implements redisscript.Client.Watch. CLIENT CACHING YES applies to the next
// command of its connection, and rueidis sends a pipeline on one connection, without
// other commands in between.
func (s *conn) watch(ctx context.Context, keys []string) []redisscript.WatchReply {
	if s.cluster() {
		return s.watchInCluster(ctx, keys)
	}
	cmds := make(rueidis.Commands, 0, 2*len(keys))
	for _, key := range keys {
		cmds = append(cmds, s.push.B().ClientCaching().Yes().Build(), s.push.B().Get().Key(key).Build())
	}
	results := s.push.DoMulti(ctx, cmds...)
	all := make([]redisscript.WatchReply, len(keys))
	for i := range all {
		all[i] = replyToGet(results[2*i+1].ToMessage())
		if err := results[2*i].Error(); err != nil {
			all[i] = redisscript.WatchReply{Err: err}
		}
	}
	return all
}

// watchInCluster sends the two commands as a transaction, because rueidis follows
// redirections for each command: a new node would answer the GET, but not watch the key.
//
// It first sends all transactions at once, each to the node that should have the slot. If
// a node refuses a transaction because of its key, watchInCluster sends that transaction
// again alone, so that rueidis redirects it as a whole.
func (s *conn) watchInCluster(ctx context.Context, keys []string) []redisscript.WatchReply {
	cmds := make(rueidis.Commands, 0, 4*len(keys))
	for _, key := range keys {
		for _, cmd := range s.watchCommands(key) {
			cmds = append(cmds, cmd.SetSlot(key))
		}
	}
	results := s.push.DoMulti(ctx, cmds...)
	all := make([]redisscript.WatchReply, len(keys))
	for i, key := range keys {
		exec := results[4*i+3]
		all[i] = replyToExec(exec)
		if err, ok := rueidis.IsRedisErr(exec.Error()); ok && strings.HasPrefix(err.Error(), "EXECABORT") && results[4*i+1].Error() == nil {
			all[i] = replyToExec(s.push.DoMulti(ctx, s.watchCommands(key)...)[3])
		}
	}
	return all
}

func (s *conn) watchCommands(key string) rueidis.Commands {
	b := s.push.B()
	return rueidis.Commands{b.Multi().Build(), b.ClientCaching().Yes().Build(), b.Get().Key(key).Build(), b.Exec().Build()}
}

// replyToExec reads the answer to EXEC: the answers to CLIENT CACHING and to GET.
func replyToExec(exec rueidis.RedisResult) redisscript.WatchReply {
	answers, err := exec.ToArray()
	if err == nil && len(answers) != 2 {
		err = errors.New("the server's answer is not one of a transaction")
	}
	if err == nil {
		err = answers[0].Error()
	}
	if err != nil {
		return redisscript.WatchReply{Err: err}
	}
	return replyToGet(answers[1], nil)
}

// replyToGet reads the answer to GET. A key of another type counts as absent, because
// Pawl did not write it.
func replyToGet(m rueidis.RedisMessage, err error) redisscript.WatchReply {
	text := ""
	if err == nil {
		text, err = m.ToString()
	}
	if redisErr, ok := rueidis.IsRedisErr(err); rueidis.IsRedisNil(err) || ok && strings.HasPrefix(redisErr.Error(), "WRONGTYPE") {
		err = nil
	}
	return redisscript.WatchReply{State: text, Err: err}
}

// refusesTracking reports whether a connection failed because of tracking: the server, or
// a proxy, does not support it, or the user lacks the right.
func refusesTracking(err error) bool {
	text := strings.ToLower(err.Error())
	return errors.Is(err, rueidis.ErrNoCache) || strings.Contains(text, "tracking") || strings.Contains(text, "client")
}
