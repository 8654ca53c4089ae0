package memlock

import (
	"context"
	"hash/maphash"
	"net/url"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// Memory is one lock server in memory. Its drivers are its clients.
type Memory struct {
	now     func() time.Time
	seed    maphash.Seed
	shards  [64]shard
	clients clients

	watchers driver.Watchers
}

// NewMemory makes an empty Memory.
func NewMemory(o *Options) *Memory {
	m := &Memory{seed: maphash.MakeSeed()}
	if o != nil {
		m.now = o.Now
	}
	if m.now == nil {
		start := time.Now()
		m.now = func() time.Time { return start.Round(0).Add(time.Since(start)) }
	}
	return m
}

// Driver makes a client of m.
func (m *Memory) Driver() *locktable.Driver {
	return m.clients.join(func(inbox string) *locktable.Driver {
		return locktable.New(&client{m, inbox}, inbox)
	})
}

// New makes the only client of a Memory of its own.
func New(o *Options) *locktable.Driver { return NewMemory(o).Driver() }

// client is the table that one driver works on: the Memory, and where the driver's
// signals go.
type client struct {
	*Memory
	inbox string
}

// Close takes the client's inbox away. The Memory stays, for the others.
func (c *client) Close() error {
	c.clients.leave(c.inbox)
	return nil
}

// named are the memories that were opened by URL and can be shared by name.
var named memories

// memories stay for the life of the process: a second caller who opens "mem:jobs" means
// the same locks as the first.
type memories struct {
	mu     sync.Mutex
	byName map[string]*Memory
}

// open returns the Memory of a name, and makes it when the name is new.
func (ms *memories) open(name string) *Memory {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.byName[name]
	if m == nil {
		m = NewMemory(nil)
		if ms.byName == nil {
			ms.byName = map[string]*Memory{}
		}
		ms.byName[name] = m
	}
	return m
}

// "mem:" is a Memory of its own, "mem:NAME" is shared by all in this process who open
// that name.
func init() {
	driver.Register("mem", func(_ context.Context, u *url.URL) (driver.Driver, error) {
		if u.Host != "" || u.Path != "" || u.User != nil || u.Fragment != "" {
			return nil, &driver.InvalidError{What: "mem URL", Problem: "has more than a name", Allowed: "mem: or mem:NAME"}
		}
		if _, err := driver.URLParameters(u, "mem URL", nil); err != nil {
			return nil, err
		}
		if u.Opaque == "" {
			return New(nil), nil
		}
		return named.open(u.Opaque).Driver(), nil
	})
}
