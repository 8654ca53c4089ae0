package redisscript

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// A clock is a lower bound of the server's clock. The driver computes the ends of its
// requests from it. The server refuses a request that arrives after its end, and answers
// with its time. So an end that is too early costs one more round trip. An end that is
// too late would let a request take effect after its caller has given up.
//
// The driver learns the bound from answers that have the time, and from the command TIME,
// which it sends before a claim if it knows no bound, and then once a minute. It forgets
// the bound when a connection is lost, because the next one may go to another server. It
// cannot use the fence of a grant, which may be ahead of the clock.
//
// In a cluster each master has its own clock. The driver uses the clock that is furthest
// behind. If another master's clock is so far ahead that it refuses a request, the driver
// remembers that master's time for a minute, by the slot of the name. A master that has
// not answered yet may be behind all others. Then steps there may take effect too late by
// the difference, which driver.MaxLead allows.
type clock struct {
	conn    bounded
	cluster bool
	loops   *engine.Background

	known     atomic.Pointer[engine.ServerTime]
	slotTimes sync.Map // of uint16 to engine.ServerTime

	startAsking sync.Once // starts askEachMinute

	mu       sync.Mutex    // protects the fields below
	asking   chan struct{} // closed when the request under way ends; nil if there is none
	failedAt time.Time     // the time of the last request without an answer
}

func newClock(conn bounded, loops *engine.Background) *clock {
	return &clock{conn: conn, loops: loops, cluster: conn.client.Cluster}
}

// toServerTime converts t to a time on the server's clock that is not later than t. If no
// clock is known, it returns 0, which the server always refuses.
func (c *clock) toServerTime(t time.Time, name string) int64 {
	if c.cluster {
		if r, ok := c.slotTimes.Load(slot(name)); ok {
			if r, _ := r.(engine.ServerTime); time.Since(r.Client) < time.Minute {
				return int64(r.LowerBound(t))
			}
		}
	}
	if r := c.known.Load(); r != nil {
		return int64(r.LowerBound(t))
	}
	return 0
}

// learnRefused learns the time from a server that refused a request because of its end.
func (c *clock) learnRefused(server int64, sent time.Time, name string) {
	if c.cluster {
		c.slotTimes.Store(slot(name), engine.ServerTime{Client: time.Now(), Server: locktable.Instant(server)})
		return
	}
	c.learn(server, sent)
}

// learn updates the bound with a time that the server read between sent and now.
func (c *clock) learn(server int64, sent time.Time) {
	if c.cluster || server <= 0 {
		return // it is not known which master has answered
	}
	old, now := c.known.Load(), time.Now()
	if old == nil || old.Outdated(locktable.Instant(server), 0, sent, now) {
		c.known.CompareAndSwap(old, &engine.ServerTime{Client: now, Server: locktable.Instant(server)})
	}
}

// forget drops the bounds, because another server may answer next.
func (c *clock) forget() {
	c.known.Store(nil)
	c.slotTimes.Clear()
}

// Reconnected notifies the driver of a new connection, which may go to another server. It
// does not block.
func (d *Driver) Reconnected() { d.clock.forget() }

// askIfUnknown asks the servers for their time unless it is known, and from then on once
// a minute. It closes the channel when they have answered, or after a second. The channel
// is nil if the caller need not wait.
func (c *clock) askIfUnknown() (answered <-chan struct{}) {
	if c.known.Load() != nil {
		return nil
	}
	c.startAsking.Do(func() { c.loops.Go(c.askEachMinute) })
	c.mu.Lock()
	if c.asking != nil || time.Since(c.failedAt) < time.Second {
		defer c.mu.Unlock()
		return c.asking
	}
	done := make(chan struct{})
	c.asking = done
	c.mu.Unlock()
	c.loops.Go(func() {
		defer close(done)
		c.askServers()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asking = nil
		if c.known.Load() == nil {
			c.failedAt = time.Now()
		}
	})
	return done
}

func (c *clock) askEachMinute() {
	ticker := time.NewTicker(time.Minute)
	defer ticker.Stop()
	for {
		select {
		case <-c.conn.life.Done():
			return
		case <-ticker.C:
			if r := c.known.Load(); r == nil || c.cluster || time.Since(r.Client) > 30*time.Second {
				c.askServers()
			}
		}
	}
}

// askServers asks each server for its time. In a cluster it keeps the time that is
// furthest behind.
func (c *clock) askServers() {
	ctx, cancel := context.WithTimeout(c.conn.life, subscribeTimeout)
	defer cancel()
	servers, err := c.conn.nodes(ctx, false)
	if err != nil {
		return
	}
	sent, readings := time.Now(), make([]*engine.ServerTime, len(servers))
	var requests sync.WaitGroup
	for i, s := range servers {
		requests.Go(func() {
			answer, err := s.ask(ctx, "TIME")
			if server := readTime(answer); err == nil && server > 0 {
				readings[i] = &engine.ServerTime{Client: time.Now(), Server: locktable.Instant(server)}
			}
		})
	}
	requests.Wait()
	var earliest *engine.ServerTime
	for _, r := range readings {
		switch {
		case r == nil:
		case !c.cluster:
			c.learn(int64(r.Server), sent)
		case earliest == nil || r.LowerBound(time.Now()) < earliest.LowerBound(time.Now()):
			earliest = r
		}
	}
	if earliest != nil {
		c.known.Store(earliest)
	}
}

// readTime parses the two lines of an answer to TIME: seconds and microseconds.
func readTime(answer string) int64 {
	var seconds, micros int64
	if _, err := fmt.Sscanf(answer, "%d\n%d", &seconds, &micros); err != nil {
		return 0
	}
	return seconds*1e6 + micros
}
