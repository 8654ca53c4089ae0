package natslock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/natslock"
)

// An acquire or a release takes at most two requests, whatever is known, in a bucket of
// our own. If another client has changed the name since it was read, the driver has to
// find that out first.
func TestRequestsOfACycle(t *testing.T) {
	t.Parallel()
	t.Run("Server", func(t *testing.T) {
		t.Parallel()
		sendsNoMore(t, natstest.Start(t, ""), 0)
	})
	t.Run("Cluster", func(t *testing.T) {
		nightly(t, "it starts a cluster")
		t.Parallel()
		nodes, _ := cluster(t)
		sendsNoMore(t, nodes[0], 0)
	})
	t.Run("ABucketOfOthers", func(t *testing.T) { // whose stamps have to be read
		t.Parallel()
		server := natstest.Start(t, "")
		_, js := connect(t, server)
		must(js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "pawl"}))(t)
		sendsNoMore(t, server, 1)
	})
}

// sendsNoMore counts the requests of a driver: each waits for its answer. On a busy
// machine one may arrive after its window, and is sent again: then the test repeats
// everything with other names.
func sendsNoMore(t *testing.T, s *natstest.Server, more uint64) {
	nc, _ := connect(t, s)
	a, err := asDriver(natslock.New(nc, nil))
	noError(t, err)
	t.Cleanup(func() { _ = a.Close() })
	b := openDriver(t, "nats://"+s.Addr)
	first := mutex("first") // from here on the bucket and the time are known
	gets(t, a, first)
	releases(t, a, first)
	var wrong []string
	for i, began := 0, time.Now(); time.Since(began) < hangTime; i++ {
		wrong = nil
		oneOfEach(t, a, b, fmt.Sprint("n", i), more, func(what string, want uint64, f func()) {
			before := nc.Stats().OutMsgs
			f()
			if n := nc.Stats().OutMsgs - before; n != want {
				wrong = append(wrong, fmt.Sprintf("%s: %d messages are sent, want %d", what, n, want))
			}
		})
		if wrong == nil {
			return
		}
	}
	t.Errorf("%q", wrong)
}

func oneOfEach(t *testing.T, a, b driver.Driver, name string, more uint64, sends func(what string, want uint64, f func())) {
	c, known := mutex(name), mutex("known-"+name)
	gets(t, b, known)
	releases(t, b, known)
	sends("a name that nobody ever had", 2+more, func() { gets(t, a, c) })
	sends("a release", 1+more, func() { releases(t, a, c) })
	sends("a name that others had", 2+more, func() { gets(t, a, known) })
	for range 3 {
		sends("a name that is known", 1+more, func() { gets(t, a, c) })
		sends("a renewal", 1+more, func() { renews(t, a, c) })
		sends("a release of it", 1+more, func() { releases(t, a, c) })
	}
	gets(t, a, c)
	next := mutex(name)
	next.Queue = true
	isRefused(t, b, next)
	sends("a release when somebody has joined the queue meanwhile, with the signal", 4+more, func() { releases(t, a, c) })
}
