package sim

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
)

// A process has a client, and users who work with it. While it is paused, it sends and
// receives nothing, and its users stand still. (Its timers do not stop, because a test
// cannot stop a goroutine. The process does not send what they start.)
type process struct {
	w      *world
	number int
	roads  []*road
	locks  *pawl.Client
	tap    *tap
	ends   []func() // called when its client is closed
	dials  int      // connections, over Redis

	mu      sync.Mutex // protects what follows
	paused  moment     // paused until then
	dead    bool       // killed: no message of it arrives any more
	cut     moment     // over Redis: no message to it or from it arrives before that
	ending  bool       // its client is closing, or closed
	left    bool       // and Close said that not all was released
	endedAt moment     // when Close returned; 0 if it has not
}

// stopped returns how much longer the process is paused.
func (p *process) stopped() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.paused-p.w.now(), 0)
}

// after calls f in the process when a message has arrived and the process is not paused.
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

// wait is a user's pause in its work. It returns false if the user has died meanwhile.
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

// kill is SIGKILL: from now on its leases and its places have no owner.
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

// closing closes the client, and notes whether it says that it could not release all
// leases.
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

// mayLeave reports whether leases and places of the process may stay in the backend: it
// was killed, or its Close says so.
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
