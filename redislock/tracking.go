package redislock

import (
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

// trackings are the ways to have a client tracked, best first: NOLOOP, which leaves out what the client itself
// changed, works from 7.0.5 on. The last is not at all.
var trackings = [][]string{{"OPTOUT", "NOLOOP"}, nil}

// withTracking sets a client's options so that the server tells t what was changed of what the client has read. OPTOUT is
// everything that it reads, and it reads what it has just written of a lease. A nil how is no tracking.
func withTracking(o *rueidis.ClientOption, how []string, t *tracker) {
	if o.DisableCache = how == nil; o.DisableCache {
		return
	}
	o.ClientTrackingOptions = how
	o.OnInvalidations = t.invalidated
}

// refusesTracking reports whether an error of connecting is about tracking: the server, or a proxy before it, does
// not know it, or the user may not have it.
func refusesTracking(err error) bool {
	said := strings.ToLower(err.Error())
	return errors.Is(err, rueidis.ErrNoCache) || strings.Contains(said, "tracking") || strings.Contains(said, "client")
}
