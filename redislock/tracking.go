package redislock

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/internal/redisscript"
)

// tracker takes what Redis says about keys that were changed by others to the driver. It
// exists before the driver does, for the client needs it, and the driver needs the
// client. A nil tracker tells nobody.
type tracker struct {
	driver atomic.Pointer[redisscript.Driver]
}

func (t *tracker) tell(d *redisscript.Driver) {
	if t != nil {
		t.driver.Store(d)
	}
}

// invalidated is called by rueidis from the goroutine that reads a connection; nil means
// that the connection was lost, or that the server forgot what it tracked.
func (t *tracker) invalidated(messages []rueidis.RedisMessage) {
	d := t.driver.Load()
	if d == nil {
		return
	}
	if messages == nil {
		d.Invalidated(nil)
		return
	}
	keys := make([]string, 0, len(messages))
	for i := range messages {
		if key, err := messages[i].ToString(); err == nil {
			keys = append(keys, key)
		}
	}
	d.Invalidated(keys)
}

// Tracking makes holders hear at once when somebody deletes, flushes or evicts what they
// hold, with a client of your own. It is made before the client is, for one driver:
//
//	o := rueidis.ClientOption{InitAddress: []string{"localhost:6379"}}
//	tracking := redislock.Track(&o)
//	client, err := rueidis.NewClient(o)
//	d, err := redislock.New(client, &redislock.Options{Tracking: tracking})
type Tracking struct{ tracker }

// Track sets what a client needs for tracking: client-side caching in the OPTIN mode
// without its own changes, one connection for all that is pipelined, and OnInvalidations,
// which goes on to what was there before.
func Track(o *rueidis.ClientOption) *Tracking {
	t := &Tracking{}
	before := o.OnInvalidations
	withTracking(o, &t.tracker)
	o.PipelineMultiplex = -1
	if before != nil {
		o.OnInvalidations = func(messages []rueidis.RedisMessage) {
			before(messages)
			t.invalidated(messages)
		}
	}
	return t
}

// withTracking sets a client's options so that the server tells t what was changed of
// what the client asked to watch: OPTIN tracks only that, and NOLOOP leaves out what the
// client itself changed (by a script from Redis 7.0.5 on).
func withTracking(o *rueidis.ClientOption, t *tracker) {
	o.DisableCache, o.ClientTrackingOptions = false, []string{"OPTIN", "NOLOOP"}
	o.OnInvalidations = t.invalidated
}

// Watch implements redisscript.Watcher. CLIENT CACHING YES is about the next command of
// its connection, and rueidis sends what is in one pipeline on one connection, with
// nothing of others in between.
func (s *sender) Watch(ctx context.Context, keys []string) []redisscript.Armed {
	if s.Cluster() {
		return s.watchInCluster(ctx, keys)
	}
	cmds := make(rueidis.Commands, 0, 2*len(keys))
	for _, key := range keys {
		cmds = append(cmds, s.push.B().ClientCaching().Yes().Build(), s.push.B().Get().Key(key).Build())
	}
	results := s.push.DoMulti(ctx, cmds...)
	all := make([]redisscript.Armed, len(keys))
	for i := range all {
		all[i] = state(results[2*i+1].ToMessage())
		if err := results[2*i].Error(); err != nil {
			all[i] = redisscript.Armed{Err: err}
		}
	}
	return all
}

// In a cluster a redirection is followed by rueidis, command by command: the GET would be
// answered by the new node, and be watched by none. So the two are a transaction, which
// has to succeed on one node as a whole.
//
// First all keys are sent at once, each transaction to the node that its slot is believed
// to be on. One that is refused because of its key is sent again by itself: then rueidis
// recognises it, and redirects all of it.
func (s *sender) watchInCluster(ctx context.Context, keys []string) []redisscript.Armed {
	cmds := make(rueidis.Commands, 0, 4*len(keys))
	for _, key := range keys {
		for _, cmd := range s.watchOne(key) {
			cmds = append(cmds, cmd.SetSlot(key))
		}
	}
	results := s.push.DoMulti(ctx, cmds...)
	all := make([]redisscript.Armed, len(keys))
	for i, key := range keys {
		exec := results[4*i+3]
		all[i] = armedBy(exec)
		if err, is := rueidis.IsRedisErr(exec.Error()); is && strings.HasPrefix(err.Error(), "EXECABORT") && results[4*i+1].Error() == nil {
			all[i] = armedBy(s.push.DoMulti(ctx, s.watchOne(key)...)[3])
		}
	}
	return all
}

func (s *sender) watchOne(key string) rueidis.Commands {
	b := s.push.B()
	return rueidis.Commands{b.Multi().Build(), b.ClientCaching().Yes().Build(), b.Get().Key(key).Build(), b.Exec().Build()}
}

// armedBy reads the answer to EXEC: those to CLIENT CACHING and to GET.
func armedBy(exec rueidis.RedisResult) redisscript.Armed {
	answers, err := exec.ToArray()
	if err == nil && len(answers) != 2 {
		err = errTransaction
	}
	if err == nil {
		err = answers[0].Error()
	}
	if err != nil {
		return redisscript.Armed{Err: err}
	}
	return state(answers[1], nil)
}

// state reads the answer to GET. What is of another type is nothing of ours.
func state(m rueidis.RedisMessage, err error) redisscript.Armed {
	text := ""
	if err == nil {
		text, err = m.ToString()
	}
	if is, ok := rueidis.IsRedisErr(err); rueidis.IsRedisNil(err) || ok && strings.HasPrefix(is.Error(), "WRONGTYPE") {
		err = nil
	}
	return redisscript.Armed{State: text, Err: err}
}

var errTransaction = errors.New("the server answered something else than a transaction does")

// refusesTracking reports whether an error of connecting is about tracking: the server,
// or a proxy before it, does not know it, or the user may not have it.
func refusesTracking(err error) bool {
	said := strings.ToLower(err.Error())
	return errors.Is(err, rueidis.ErrNoCache) || strings.Contains(said, "tracking") || strings.Contains(said, "client")
}
