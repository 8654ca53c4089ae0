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

// seen has what a watch has yielded, in a few words.
type seen struct {
	entries []string
	end     context.CancelFunc
	done    chan struct{}
}

// sees watches a name.
func sees(t *testing.T, locks *pawl.Client, name string) *seen {
	ctx, cancel := context.WithCancel(t.Context())
	s := &seen{end: cancel, done: make(chan struct{})}
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

func (s *seen) ends() string {
	s.end()
	<-s.done
	return strings.Join(s.entries, " ")
}

// An idle watch costs what docs/internals/guarantees.md says: a poll each 5 s, and what
// keeps the server's push alive.
func TestAnIdleWatchCostsLittleAndReportsAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		watcher, other := w.client(nil), w.client(nil)
		s := sees(t, watcher, "job")
		time.Sleep(time.Second)
		before := w.asked.Load()
		time.Sleep(time.Hour)
		if got := float64(w.asked.Load()-before) / 3600; got > 0.4 {
			t.Errorf("%.2f requests a second, want 0.4 at the most", got)
		} else {
			t.Logf("%.2f requests a second", got)
		}
		lease := lock(t, other.Mutex("job"))
		synctest.Wait() // no time passes
		time.Sleep(time.Second)
		released(t, lease)
		synctest.Wait()
		if got, want := s.ends(), "0/0 1/0 0/0"; got != want {
			t.Errorf("seen %s, want %s", got, want)
		}
	})
}

// When the server loses its data, it loses the watches in the scripts' state, too. The
// driver finds that out.
func TestAWatchOutlivesTheData(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d, locks := w.driver(), w.client(nil)
		told := 0
		defer d.Watch("job", func() { told++ })()
		tells := func(what string, after time.Duration) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if told == 0 {
				t.Errorf("%s was not told", what)
			}
			told = 0
		}
		tells("the beginning", time.Second)
		w.redis.FlushAll()
		tells("that something may have happened", 20*time.Second)
		lease := lock(t, locks.Mutex("job"))
		tells("a change", 0)
		released(t, lease)
		tells("a change", 0)
		w.crash()
		time.Sleep(time.Minute)
		if d.Properties().PushesChanges {
			t.Error("PushesChanges is true, and there is no server")
		}
		w.restart()
		tells("that something may have happened", 11*time.Second) // an attempt of 5 s, and a pause of 5 s
		if !d.Properties().PushesChanges {
			t.Error("PushesChanges is false, and the server is back")
		}
		lease = lock(t, locks.Mutex("job"))
		tells("a change", 0)
		released(t, lease)
	})
}

// One minute after the last watch of a name, the name is as quick as before: its state
// has no trace of the watch.
func TestANameThatIsNotWatchedAnyMoreIsQuickAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d, locks := w.driver(), w.client(nil)
		state := func() int {
			released(t, lock(t, locks.Mutex("job")))
			s, err := w.redis.Get("pawl:{job}s")
			noError(t, err)
			return len(s)
		}
		plain := state()
		stop := d.Watch("job", func() {})
		time.Sleep(time.Hour)
		if got := state(); got != plain+8 {
			t.Errorf("%d bytes while it is watched, want the instant until when", got)
		}
		stop()
		time.Sleep(time.Minute)
		if got := state(); got != plain {
			t.Errorf("%d bytes after that, want %d", got, plain)
		}
	})
}

// Both packages follow, with their waiters.
func TestAWatchFollowsASlotThatMoves(t *testing.T) {
	nightly(t, "whole clusters")
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	both := []*redisscript.Driver{
		openDriver(t, "redis://"+nodes[0].Addr), overGoRedis(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].Addr}})),
	}
	other, holder := openDriver(t, "redis://"+nodes[1].Addr), mutex("job")
	gets(t, other, holder)
	var tells []func(what string)
	var heard []<-chan driver.Signal
	for _, d := range both {
		waiter := queued("job") // so that it subscribes to the slot
		isRefused(t, d, waiter)
		releases(t, d, waiter)
		tells, heard = append(tells, servertest.Watch(t, d, "job")), append(heard, servertest.Listen(t, d))
	}
	releases(t, other, holder)
	from, to, slot := redistest.Moving(nodes, "job")
	for range 2 {
		redistest.Move(nodes, slot, from, to, func() {})
		basictest.Eventually(t, "both listen where the slot is now", func() bool {
			return strings.HasSuffix(to.Do("PUBSUB", "SHARDNUMSUB", "pawl:{job}w"), ":2\r\n") &&
				both[0].Properties().PushesChanges && both[1].Properties().PushesChanges
		})
		for i := range both {
			tells[i]("that the slot has moved")
			servertest.Hear(t, heard[i], driver.SignalRetry, driver.Token{})
		}
		c := mutex("job")
		gets(t, other, c)
		for i := range both {
			tells[i]("a change")
		}
		releases(t, other, c)
		from, to = to, from
	}
}
