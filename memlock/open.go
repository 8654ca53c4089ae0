package memlock

import (
	"context"
	"net/url"
	"sync"

	"github.com/pawl-go/pawl/driver"
)

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
