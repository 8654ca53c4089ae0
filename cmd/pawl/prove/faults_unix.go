//go:build unix

package prove

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/cmd/pawl/prove/proxy"
	"github.com/pawl-go/pawl/cmd/pawl/prove/worker"
)

// doFaults causes faults until ctx ends: MaxFaults at a time to workers, and one at a
// time to the server. It returns when all of them are over.
func (c *controller) doFaults(ctx context.Context) {
	chosen := func(server bool) []string {
		return slices.DeleteFunc(slices.Clone(c.Faults), func(k string) bool { return slices.Contains(history.ServerFaults, k) != server })
	}
	var faults sync.WaitGroup
	defer faults.Wait()
	if kinds := chosen(false); len(kinds) > 0 {
		for i := range c.MaxFaults {
			faults.Go(func() { c.faultWorkers(ctx, rand.New(rand.NewPCG(c.Seed, uint64(i)+1)), kinds) })
		}
	}
	if kinds := chosen(true); len(kinds) > 0 {
		faults.Go(func() { c.faultServer(ctx, rand.New(rand.NewPCG(c.Seed, 0)), kinds) })
	}
}

// faultWorkers causes one fault after the other to workers, until ctx ends. It uses all
// kinds in a random order, and then all of them again in another one.
func (c *controller) faultWorkers(ctx context.Context, dice *rand.Rand, kinds []string) {
	var pending []string
	for sleep(ctx, between(dice, c.TTL/10, c.TTL)); ctx.Err() == nil; sleep(ctx, between(dice, c.TTL/20, c.TTL/2)) {
		if len(pending) == 0 {
			pending = slices.Clone(kinds)
			dice.Shuffle(len(pending), func(i, j int) { pending[i], pending[j] = pending[j], pending[i] })
		}
		s := c.slots[dice.IntN(len(c.slots))]
		if !s.faultMu.TryLock() {
			continue
		}
		if _, ready := s.current(); ready {
			s.injectFault(ctx, dice, pending[0])
			pending = pending[1:]
		}
		s.faultMu.Unlock()
	}
}

// injectFault causes one fault to the worker.
func (s *slot) injectFault(ctx context.Context, dice *rand.Rand, kind string) {
	if kind == history.Stop || kind == history.Kill || kind == history.Silence {
		s.awaitHold(ctx, s.TTL/2)
	}
	f := history.Fault{Kind: kind, Worker: s.worker, From: s.now()}
	switch p, ready := s.current(); {
	case !ready:
		return
	case kind == history.Stop:
		p.pause()
		sleep(context.Background(), between(dice, s.TTL+s.TTL/10, 2*s.TTL))
		p.resume()
		f.Hit = 1
	case kind == history.Kill:
		p.kill()
		<-p.ended
		f.Hit = 1
	case kind == history.Crash, kind == history.Overstay:
		f.Hit = s.orderFault(ctx, p, kind)
	default:
		maxDelay := between(dice, s.TTL/4, 2*s.TTL)
		end := s.proxy.Begin(proxy.Fault{Kind: kind, MaxDelay: maxDelay, Seed: dice.Uint64()})
		d := between(dice, s.TTL/4, 2*s.TTL)
		if kind == history.Cut {
			d = between(dice, 0, s.TTL/4)
		}
		sleep(ctx, d)
		f.Hit = end()
	}
	f.To = s.now()
	s.noteFault(f)
}

// awaitHold waits until the worker holds something, but no longer than timeout, because a
// fault at another moment costs the worker no lease.
func (s *slot) awaitHold(ctx context.Context, timeout time.Duration) {
	for begun := time.Now(); time.Since(begun) < timeout && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		held := false
		for _, c := range s.openClaims {
			held = held || c.Got > 0
		}
		s.mu.Unlock()
		if held {
			return
		}
	}
}

// orderFault orders a fault that the worker causes in its next section, and waits for it.
func (s *slot) orderFault(ctx context.Context, p *process, kind string) (hit int) {
	for len(s.ack) > 0 {
		<-s.ack
	}
	p.order(worker.Order{Do: kind})
	limit, cancel := context.WithTimeout(ctx, 10*s.TTL)
	defer cancel()
	for {
		select {
		case k := <-s.ack:
			if k == kind {
				return 1
			}
		case <-p.ended:
			if len(s.ack) == 0 {
				return 0
			}
		case <-limit.Done():
			return 0
		}
	}
}

func (c *controller) noteFault(f history.Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.Hit > 0 {
		c.faults++
	}
	c.writeLocked(history.Line{Fault: &f})
}

func between(dice *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(dice.Int64N(max(int64(to-from), 1)))
}

// sleep ends early with ctx.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
