package etcdlock_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/etcdtest"
	"github.com/pawl-go/pawl/internal/timeshift"
)

// The server's wall clock is set, by a minute forward and back: leases go on, no longer
// and no shorter, and no client notices.
func TestTheServersClockIsSet(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: it waits for leases to end")
	}
	t.Parallel()
	clock := timeshift.NewGo(t, 0)
	c := etcdtest.Setup{Members: 1, Begin: clock.Start}.Start(t)
	a, b := start(t, c.URL()), start(t, c.URL())
	const ttl = 50 * time.Second // less than the clock is set by, and more than a slow machine needs
	holder := mutex("job")
	holder.TTL = ttl
	last := gets(t, a, holder).Fence
	for _, by := range []time.Duration{time.Minute, -time.Minute, 0} {
		clock.Set(by)
		until(t, "the server's clock", func() error {
			if off := ahead(t, c.Members[0]); (off - by).Abs() > 5*time.Second {
				return fmt.Errorf("it is off by %v; want %v", off, by)
			}
			return nil
		})
		refused(t, b, mutex("job"))
		keeps(t, a, holder)
		short := mutex("short")
		short.TTL = 4 * time.Second
		began := time.Now()
		gets(t, a, short)
		other := mutex("short")
		until(t, "the end of a short lease", func() error {
			_, err := b.Acquire(brief(t), other)
			if took := time.Since(began); err == nil && took < short.TTL {
				t.Errorf("by %v: a lease of %v ended after %v", by, short.TTL, took)
			}
			return err
		})
		releases(t, b, other)
		releases(t, a, holder)
		holder = mutex("job")
		holder.TTL = ttl
		g := gets(t, b, holder)
		if g.Fence <= last {
			t.Errorf("by %v: fence %d after %d", by, g.Fence, last)
		}
		last, a, b = g.Fence, b, a
	}
}

// ahead returns the time by which a server's clock is ahead of ours, to within some
// seconds.
func ahead(t *testing.T, m *etcdtest.Member) time.Duration {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+m.Addr+"/version", nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	at, err := http.ParseTime(r.Header.Get("Date"))
	if err != nil {
		t.Fatal(err)
	}
	return time.Until(at)
}
