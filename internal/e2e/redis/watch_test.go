package redis_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// A watcher has the entries that a watch has yielded, as "HOLDERS/WAITERS".
type watcher struct {
	entries []string
	cancel  context.CancelFunc
	done    chan struct{}
}

// startWatch watches a name.
func startWatch(t *testing.T, locks *pawl.Client, name string) *watcher {
	ctx, cancel := context.WithCancel(t.Context())
	s := &watcher{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for e, err := range locks.Watch(ctx, name) {
			if err != nil {
				t.Error(err)
			}
			s.entries = append(s.entries, fmt.Sprintf("%d/%d", len(e.Holders), len(e.Waiters)))
		}
	}()
	return s
}

func (s *watcher) stop() string {
	s.cancel()
	<-s.done
	return strings.Join(s.entries, " ")
}

// docs/internals/guarantees.md has the cost of an idle watch: a poll each 5 s, and the
// requests that keep the server's push alive.
func TestAnIdleWatchCostsLittleAndReportsAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		watching, other := w.client(nil), w.client(nil)
		s := startWatch(t, watching, "job")
		time.Sleep(time.Second)
		before := w.runs.Load()
		time.Sleep(time.Hour)
		if got := float64(w.runs.Load()-before) / 3600; got > 0.4 {
			t.Errorf("%.2f requests a second, want at most 0.4", got)
		} else {
			t.Logf("%.2f requests a second", got)
		}
		lease := lock(t, other.Mutex("job"))
		synctest.Wait() // no time passes
		time.Sleep(time.Second)
		release(t, lease)
		synctest.Wait()
		if got, want := s.stop(), "0/0 1/0 0/0"; got != want {
			t.Errorf("seen %s, want %s", got, want)
		}
	})
}

// A server that loses its data also loses the marks of the watches. The driver notices
// that.
func TestAWatchOutlivesTheData(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d, locks := w.driver(), w.client(nil)
		calls := 0
		defer d.Watch("job", func() { calls++ })()
		awaitCall := func(what string, after time.Duration) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if calls == 0 {
				t.Errorf("no call for %s", what)
			}
			calls = 0
		}
		awaitCall("the beginning", time.Second)
		w.redis.FlushAll()
		awaitCall("a possible change", 20*time.Second)
		lease := lock(t, locks.Mutex("job"))
		awaitCall("a change", 0)
		release(t, lease)
		awaitCall("a change", 0)
		w.crash()
		time.Sleep(time.Minute)
		if d.Properties().PushesChanges {
			t.Error("PushesChanges is true without a server")
		}
		w.restart()
		awaitCall("a possible change", 11*time.Second) // an attempt of 5 s, and a pause of 5 s
		if !d.Properties().PushesChanges {
			t.Error("PushesChanges is false with the server")
		}
		lease = lock(t, locks.Mutex("job"))
		awaitCall("a change", 0)
		release(t, lease)
	})
}

// A watched name is not the quick case of the scripts. One minute after its last watch,
// its state has no trace of the watch, so that it is the quick case again.
func TestANameIsTheQuickCaseAfterItsWatch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d, locks := w.driver(), w.client(nil)
		state := func() int {
			release(t, lock(t, locks.Mutex("job")))
			s, err := w.redis.Get("pawl:{job}s")
			noError(t, err)
			return len(s)
		}
		unwatched := state()
		stop := d.Watch("job", func() {})
		time.Sleep(time.Hour)
		if got := state(); got != unwatched+8 {
			t.Errorf("%d bytes while the name is watched, want 8 more for the end of the watch", got)
		}
		stop()
		time.Sleep(time.Minute)
		if got := state(); got != unwatched {
			t.Errorf("%d bytes after the watch, want %d", got, unwatched)
		}
	})
}

// The watches and waiters of both packages follow the slot.
func TestAWatchFollowsASlotThatMoves(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	both := []*redisscript.Driver{
		openDriver(t, "redis://"+nodes[0].Addr), overGoRedis(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].Addr}})),
	}
	other, holder := openDriver(t, "redis://"+nodes[1].Addr), mutex("job")
	gets(t, other, holder)
	var awaitCall []func(what string)
	var signals []<-chan driver.Signal
	for _, d := range both {
		waiter := queued("job") // so that it subscribes to the slot
		isRefused(t, d, waiter)
		releases(t, d, waiter)
		awaitCall, signals = append(awaitCall, servertest.Watch(t, d, "job")), append(signals, servertest.Listen(t, d))
	}
	releases(t, other, holder)
	from, to, slot := redistest.PlanMove(nodes, "job")
	for range 2 {
		redistest.MoveSlot(nodes, slot, from, to, func() {})
		basictest.Eventually(t, "both listen on the new node", func() bool {
			return strings.HasSuffix(to.Do("PUBSUB", "SHARDNUMSUB", "pawl:{job}w"), ":2\r\n") &&
				both[0].Properties().PushesChanges && both[1].Properties().PushesChanges
		})
		for i := range both {
			awaitCall[i]("the move of the slot")
			servertest.Hear(t, signals[i], driver.SignalRetry, driver.Token{})
		}
		c := mutex("job")
		gets(t, other, c)
		for i := range both {
			awaitCall[i]("a change")
		}
		releases(t, other, c)
		from, to = to, from
	}
}
