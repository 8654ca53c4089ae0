package etcdlock_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/etcdtest"
)

// A process has one etcd lease and two watches, regardless of the number of its leases.
func TestTenThousandLeasesCostOneEtcdLeaseAndTwoWatches(t *testing.T) {
	skipIfShort(t, "it is a crowd")
	t.Parallel()
	const leases = 10_000
	c := etcdtest.Start(t, 1)
	d := openDriver(t, c.URL())
	all := make([]driver.LeaseRef, leases)
	var workers sync.WaitGroup
	for first := range 64 {
		workers.Go(func() {
			for i := first; i < leases; i += 64 {
				m := mutex("job" + strconv.Itoa(i))
				m.TTL = time.Minute
				if _, err := d.Acquire(ctx, m); err != nil {
					t.Error(err)
					return
				}
				all[i] = lease(m)
			}
		})
	}
	workers.Wait()
	if t.Failed() {
		return
	}
	began := time.Now()
	answers, err := d.Renew(ctx, all)
	noError(t, err)
	for _, err := range answers {
		noError(t, err)
	}
	t.Logf("%d leases renewed in %v", leases, time.Since(began))
	admin := client(t, c.Addrs()...)
	granted, err := admin.Leases(brief(t))
	noError(t, err)
	if n := len(granted.Leases); n != 1 {
		t.Errorf("%d etcd leases; want one", n)
	}
	if n := metric(t, c.Members[0], "etcd_debugging_mvcc_watcher_total"); n != 2 {
		t.Errorf("%v watches; want two", n)
	}
}

func metric(t *testing.T, m *etcdtest.Member, name string) float64 {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+m.Addr+"/metrics", nil)
	noError(t, err)
	r, err := http.DefaultClient.Do(request)
	noError(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	noError(t, err)
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
			noError(t, err)
			return n
		}
	}
	t.Fatalf("no %s", name)
	return 0
}
