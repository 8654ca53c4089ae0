package sim

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
)

// A process has a client, and users who work with it. While it is paused nothing leaves
// it, nothing comes in, and its users stand still. (Its timers do not: a goroutine cannot
// be stopped from outside. What they would start is not sent.)
type process struct {
	w      *world
	number int
	roads  []*road
	locks  *pawl.Client
	tap    *tap
	ends   []func() // what is done when its client is closed
	dials  int      // connections, over Redis

	mu      sync.Mutex // protects what follows
	paused  moment     // until then
	dead    bool       // killed: nothing of it comes through any more
	cut     moment     // nothing reaches it, or leaves it, before that, over Redis
	ending  bool       // its client is being closed, or is
	left    bool       // and said that not all was released
	endedAt moment     // since when it is; 0 is not
}

// stopped is for how much longer it is paused.
func (p *process) stopped() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.paused-p.w.now(), 0)
}

// after hands something to the process when it has arrived and the process is not paused.
func (p *process) after(d time.Duration, f func()) {
	p.w.after(d, func() {
		if left := p.stopped(); left > 0 {
			p.after(left, f)
			return
		}
		f()
	})
}

func (p *process) pause(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = max(p.paused, p.w.now()+d)
}

// wait is a user's pause in its work; false means that it has died meanwhile.
func (p *process) wait(d time.Duration, until <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-until:
	}
	for left := p.stopped(); left > 0; left = p.stopped() {
		time.Sleep(left)
	}
	return !p.isDead()
}

func (p *process) cutFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.cut-p.w.now(), 0)
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// kill is SIGKILL: its leases and its places are nobody's from now on.
func (p *process) kill() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	for _, r := range p.roads {
		r.mu.Lock()
		r.cut = 1 << 62
		r.mu.Unlock()
	}
	p.w.history.died(p)
}

// closes ends the client of a process, within a time.
func (p *process) closes(within time.Duration, how func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	_ = p.closing(ctx, how)
}

// close is Close, for closes and closing.
func (p *process) close(context.Context) error { return p.locks.Close() }

// closing ends it, and notes whether it says that it could not release all.
func (p *process) closing(ctx context.Context, how func(context.Context) error) error {
	p.mu.Lock()
	p.ending = true
	p.mu.Unlock()
	err := how(ctx)
	p.mu.Lock()
	p.left = p.left || err != nil
	if p.endedAt == 0 {
		p.endedAt = p.w.now()
	}
	p.mu.Unlock()
	p.w.note("", p, "is closed", err)
	return err
}

// mayLeave reports whether what it holds, or waits for, may stay in the backend: it was
// killed, or its Close says so.
func (p *process) mayLeave() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead || p.left || p.ending && p.w.plan.backend == "quorum"
}

func (p *process) closed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ending
}

func (p *process) id() string { return "process " + strconv.Itoa(p.number) }
