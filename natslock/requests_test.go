package natslock_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/natslock"
)

// In a bucket of natslock, an acquire or a release takes at most two requests. It takes
// more if another client has changed the name since the driver read it.
func TestRequestsOfACycle(t *testing.T) {
	t.Parallel()
	t.Run("Server", func(t *testing.T) {
		t.Parallel()
		checkRequests(t, natstest.Start(t, ""), 0)
	})
	t.Run("Cluster", func(t *testing.T) {
		skipIfShort(t, "it starts a cluster")
		t.Parallel()
		nodes, _ := cluster(t)
		checkRequests(t, nodes[0], 0)
	})
	t.Run("ABucketOfOthers", func(t *testing.T) { // without stamps, so the driver reads each message
		t.Parallel()
		server := natstest.Start(t, "")
		_, js := connect(t, server)
		must(js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "pawl"}))(t)
		checkRequests(t, server, 1)
	})
}

// checkRequests counts the requests of a driver, which sends one after the other. On a
// busy machine a write may arrive after its window, and the driver sends it again. So
// checkRequests repeats everything with other names, until it has counted each step right
// once.
func checkRequests(t *testing.T, s *natstest.Server, extra uint64) {
	nc, _ := connect(t, s)
	a, err := asDriver(natslock.New(nc, nil))
	noError(t, err)
	t.Cleanup(func() { _ = a.Close() })
	b := openDriver(t, "nats://"+s.Addr)
	first := mutex("first") // shows the driver the bucket and the time
	gets(t, a, first)
	releases(t, a, first)
	wrong := map[string]string{} // by step; empty if its count was right once
	for i, began := 0, time.Now(); time.Since(began) < hangTime; i++ {
		takeSteps(t, a, b, fmt.Sprint("n", i), extra, func(step string, want uint64, f func()) {
			before := nc.Stats().OutMsgs
			f()
			if n := nc.Stats().OutMsgs - before; n == want {
				wrong[step] = ""
			} else if last, counted := wrong[step]; !counted || last != "" {
				wrong[step] = fmt.Sprintf("%s: %d messages; want %d", step, n, want)
			}
		})
		if left := slices.DeleteFunc(slices.Collect(maps.Values(wrong)), func(s string) bool { return s == "" }); len(left) == 0 {
			return
		}
	}
	t.Errorf("%q", wrong)
}

func takeSteps(t *testing.T, a, b driver.Driver, name string, extra uint64, count func(what string, want uint64, f func())) {
	c, known := mutex(name), mutex("known-"+name)
	gets(t, b, known)
	releases(t, b, known)
	count("a new name", 2+extra, func() { gets(t, a, c) })
	count("a release", 1+extra, func() { releases(t, a, c) })
	count("a name that another client used", 2+extra, func() { gets(t, a, known) })
	for range 3 {
		count("a known name", 1+extra, func() { gets(t, a, c) })
		count("a renewal", 1+extra, func() { renews(t, a, c) })
		count("a release of a known name", 1+extra, func() { releases(t, a, c) })
	}
	gets(t, a, c)
	isRefused(t, b, queued(name))
	count("a release after a waiter joined, with the signal", 4+extra, func() { releases(t, a, c) })
}
