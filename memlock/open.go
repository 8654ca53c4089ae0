package memlock

import (
	"context"
	"net/url"
	"sync"

	"github.com/pawl-go/pawl/driver"
)

// named are the memories that were opened by URL and can be shared by name. They stay for the life of the
// process: whoever opens "mem:jobs" again means the same locks.
var named struct {
	sync.Mutex
	memories map[string]*Memory
}

// "mem:" is a Memory of its own, "mem:NAME" is shared by all in this process who open that name.
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
		named.Lock()
		defer named.Unlock()
		m := named.memories[u.Opaque]
		if m == nil {
			m = NewMemory(nil)
			if named.memories == nil {
				named.memories = map[string]*Memory{}
			}
			named.memories[u.Opaque] = m
		}
		return m.Driver(), nil
	})
}
