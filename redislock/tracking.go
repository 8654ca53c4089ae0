package redislock

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/internal/redisscript"
)

// tracker takes what Redis says about keys that were changed by others to the driver. It exists before the driver
// does, for the client needs it, and the driver needs the client. A nil tracker tells nobody.
type tracker struct {
	driver atomic.Pointer[redisscript.Driver]
}

func (t *tracker) tell(d *redisscript.Driver) {
	if t != nil {
		t.driver.Store(d)
	}
}

// invalidated is called by rueidis from the goroutine that reads a connection; nil means that the connection was lost, or
// that the server forgot what it tracked.
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

// Tracking makes holders hear at once when somebody deletes, flushes or evicts what they hold, with a client of your own. It
// is made before the client is, for one driver:
//
//	o := rueidis.ClientOption{InitAddress: []string{"localhost:6379"}}
//	tracking := redislock.Track(&o)
//	client, err := rueidis.NewClient(o)
//	d, err := redislock.New(client, &redislock.Options{Tracking: tracking})
type Tracking struct{ tracker }

// Track sets what a client needs for tracking: client-side caching in the OPTIN mode without its own changes, one
// connection for all that is pipelined, and OnInvalidations, which goes on to what was there before.
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

// withTracking sets a client's options so that the server tells t what was changed of what the client asked to watch: OPTIN
// tracks only that, and NOLOOP leaves out what the client itself changed (by a script from Redis 7.0.5 on).
func withTracking(o *rueidis.ClientOption, t *tracker) {
	o.DisableCache, o.ClientTrackingOptions = false, []string{"OPTIN", "NOLOOP"}
	o.OnInvalidations = t.invalidated
}

// Watch implements redisscript.Watcher. CLIENT CACHING YES is about the next command of its connection, and rueidis sends
// what is in one pipeline on one connection, with nothing of others in between.
func (s *sender) Watch(ctx context.Context, keys []string) ([]bool, error) {
	cmds := make(rueidis.Commands, 0, 2*len(keys))
	for _, key := range keys {
		cmds = append(cmds, s.push.B().ClientCaching().Yes().Build(), s.push.B().Exists().Key(key).Build())
	}
	there := make([]bool, len(keys))
	for i, r := range s.push.DoMulti(ctx, cmds...) {
		n, err := int64(0), r.Error()
		if i%2 == 1 && err == nil {
			n, err = r.AsInt64()
			there[i/2] = n == 1
		}
		if err != nil {
			return nil, err
		}
	}
	return there, nil
}

// refusesTracking reports whether an error of connecting is about tracking: the server, or a proxy before it, does
// not know it, or the user may not have it.
func refusesTracking(err error) bool {
	said := strings.ToLower(err.Error())
	return errors.Is(err, rueidis.ErrNoCache) || strings.Contains(said, "tracking") || strings.Contains(said, "client")
}
