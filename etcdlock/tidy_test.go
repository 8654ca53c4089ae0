package etcdlock_test

import (
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Clients delete names that were not used for the retention time and are not held. Later
// fences of these names still rise.
func TestNamesAreForgottenAfterTheRetention(t *testing.T) {
	t.Parallel()
	url, prefix, c := ownPrefix(t)
	d := openDriver(t, url)
	d.SetRetention(time.Second)
	held := mutex("held")
	held.TTL = time.Hour // a slow machine takes its time for the rest
	gets(t, d, held)
	const names = 40
	var last uint64
	for i := range names {
		last = cycle(t, d, fmt.Sprint("old", i)).Fence
	}
	admin := client(t, c.Addrs()...)
	until(t, "tidying", func() error {
		other := mutex("now") // the steps on any name make the client tidy
		gets(t, d, other)
		releases(t, d, other)
		left, err := admin.Get(brief(t), prefix+"//entry/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		noError(t, err)
		if left.Count != 2 {
			return fmt.Errorf("%d names are left; want 2", left.Count)
		}
		return nil
	})
	refused(t, d, mutex("held"))
	if g := gets(t, d, mutex(fmt.Sprint("old", names-1))); g.Fence <= last {
		t.Errorf("fence %d after the forgotten %d", g.Fence, last)
	}
}

// With the default retention, clients delete no name.
func TestNamesAreRememberedForTheRetention(t *testing.T) {
	t.Parallel()
	url, prefix, c := ownPrefix(t)
	d := openDriver(t, url)
	const names = 70 // enough steps for a client to tidy
	for i := range names {
		cycle(t, d, fmt.Sprint("old", i))
	}
	left, err := client(t, c.Addrs()...).Get(brief(t), prefix+"//entry/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || left.Count != names {
		t.Errorf("%d names, %v; want %d", left.Count, err, names)
	}
}
