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
	"github.com/pawl-go/pawl/goredislock"
	"github.com/pawl-go/pawl/internal/redistest"
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
func TestAnIdleWatchCostsLittleAndHearsAtOnce(t *testing.T) {
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

func TestAWatchFollowsASlotThatMoves(t *testing.T) {
	nightly(t, "whole clusters")
	nodes := redistest.StartCluster(t, 3)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].Addr}})
	defer client.Close()
	d, err := concrete(goredislock.New(client, nil))
	noError(t, err)
	locks, err := pawl.New(d, nil)
	noError(t, err)
	defer func() { _ = locks.Close() }()
	told := make(chan struct{}, 1000)
	defer d.Watch("job", func() { told <- struct{}{} })()
	look := make(chan struct{}, 1000) // a waiter learns of it, too
	defer d.Listen(func(s driver.Signal) {
		if s.Kind == driver.SignalRetry {
			look <- struct{}{}
		}
	})()
	released(t, lock(t, locks.Mutex("job")))
	from, to, slot := redistest.Moving(nodes, "job")
	for range 2 {
		redistest.Move(nodes, slot, from, to, func() {})
		for tries := 0; !strings.Contains(to.Do("PUBSUB", "SHARDCHANNELS"), "pawl:{job}w") || !d.Properties().PushesChanges; tries++ {
			if tries == 1000 {
				t.Fatal("nobody listens where the slot is now")
			}
			time.Sleep(20 * time.Millisecond)
		}
		select {
		case <-look:
		case <-time.After(5 * time.Second):
			t.Error("waiters were not told that the slot has moved")
		}
		time.Sleep(20 * time.Millisecond)
		for len(told) > 0 {
			<-told
		}
		released(t, lock(t, locks.Mutex("job")))
		select {
		case <-told:
		case <-time.After(5 * time.Second):
			t.Error("a change was not told")
		}
		from, to = to, from
	}
}
