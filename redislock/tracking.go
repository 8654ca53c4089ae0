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

// trackings are the ways to have a client tracked, best first: OPTIN tracks only what is asked for, and NOLOOP leaves
// out what the client itself changed (from Redis 7.0.5 on, without errors). The last is not at all.
var trackings = [][]string{{"OPTIN", "NOLOOP"}, nil}

// withTracking sets a client's options so that the server tells t what was changed of what the client asked to watch.
// A nil how is no tracking.
func withTracking(o *rueidis.ClientOption, how []string, t *tracker) {
	if o.DisableCache = how == nil; o.DisableCache {
		return
	}
	o.ClientTrackingOptions = how
	o.OnInvalidations = t.invalidated
}

// Watch implements redisscript.Watcher. CLIENT CACHING YES is about the next command of its connection, and rueidis sends
// what is in one pipeline on one connection, with nothing of others in between.
func (s *sender) Watch(ctx context.Context, keys []string) ([]bool, error) {
	cmds := make(rueidis.Commands, 0, 2*len(keys))
	for _, key := range keys {
		cmds = append(cmds, s.client.B().ClientCaching().Yes().Build(), s.client.B().Exists().Key(key).Build())
	}
	there := make([]bool, len(keys))
	for i, r := range s.client.DoMulti(ctx, cmds...) {
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
