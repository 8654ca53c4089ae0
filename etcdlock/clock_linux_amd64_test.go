package etcdlock_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/etcdtest"
	"github.com/pawl-go/pawl/internal/timeshift"
)

// The server's wall clock is set, by a minute forward and back: leases go on, no longer
// and no shorter, and no client notices.
func TestTheServersClockIsSet(t *testing.T) {
	t.Parallel()
	clock := timeshift.NewGo(t, 0)
	c := etcdtest.Setup{Members: 1, Begin: clock.Start}.Start(t)
	a, b := start(t, c.URL()), start(t, c.URL())
	holder := mutex("job")
	last := gets(t, a, holder).Fence
	for _, by := range []time.Duration{time.Minute, -time.Minute, 0} {
		clock.Set(by)
		if off := ahead(t, c.Members[0]); off-by > 5*time.Second || by-off > 5*time.Second {
			t.Fatalf("the server's clock is off by %v; want %v", off, by)
		}
		refused(t, b, mutex("job"))
		keeps(t, a, holder)
		short := mutex("short")
		short.TTL = 4 * time.Second // a slow machine asks for it before that
		gets(t, a, short)
		refused(t, b, mutex("short"))
		other, began := mutex("short"), time.Now()
		for {
			time.Sleep(time.Second)
			_, err := b.Acquire(brief(t), other)
			if err == nil {
				break
			}
			if time.Since(began) > time.Minute {
				t.Fatalf("by %v: %v; want the short lease to end", by, err)
			}
		}
		releases(t, b, other)
		releases(t, a, holder)
		holder = mutex("job")
		g := gets(t, b, holder)
		if g.Fence <= last {
			t.Errorf("by %v: fence %d after %d", by, g.Fence, last)
		}
		last, a, b = g.Fence, b, a
	}
}

// ahead is how far a server's clock is ahead of ours, to within some seconds.
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
