package sim

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
)

// A process has a client, and users who work with it. While it is paused, it sends and
// receives no messages, and its users wait. (Its timers continue, because a test cannot
// stop a goroutine. Requests that they start are sent after the pause.)
type process struct {
	w       *world
	number  int
	links   []*link
	locks   *pawl.Client
	tap     *tap
	onClose []func() // called when its client is closed
	dials   int      // connections, over Redis

	mu          sync.Mutex // protects what follows
	pausedUntil moment
	dead        bool   // killed: none of its messages arrives any more
	cutUntil    moment // over Redis: no message to it or from it arrives until then
	closing     bool   // its client is closing, or closed
	closeFailed bool   // Close returned an error: not all leases were released
	closedAt    moment // when Close returned; 0 if it has not
}

// pauseLeft returns how much longer the process is paused.
func (p *process) pauseLeft() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.pausedUntil-p.w.now(), 0)
}

// after calls f in the process when a message has arrived and the process is not paused.
func (p *process) after(d time.Duration, f func()) {
	p.w.after(d, func() {
		if left := p.pauseLeft(); left > 0 {
			p.after(left, f)
			return
		}
		f()
	})
}

func (p *process) pause(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pausedUntil = max(p.pausedUntil, p.w.now()+d)
}

// wait is a user's pause in its work. It returns false if the process was killed
// meanwhile.
func (p *process) wait(d time.Duration, until <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-until:
	}
	for left := p.pauseLeft(); left > 0; left = p.pauseLeft() {
		time.Sleep(left)
	}
	return !p.isDead()
}

func (p *process) cutFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.cutUntil-p.w.now(), 0)
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// kill simulates SIGKILL.
func (p *process) kill() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	for _, r := range p.links {
		r.mu.Lock()
		r.cutUntil = 1 << 62
		r.mu.Unlock()
	}
	p.w.history.noteDeath(p)
}

// closeWithin ends the client of a process, within a time.
func (p *process) closeWithin(within time.Duration, how func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	_ = p.closeAndNote(ctx, how)
}

// close is Client.Close with the parameter that closeAndNote expects.
func (p *process) close(context.Context) error { return p.locks.Close() }

// closeAndNote closes the client, and records whether it failed to release all leases.
func (p *process) closeAndNote(ctx context.Context, how func(context.Context) error) error {
	p.mu.Lock()
	p.closing = true
	p.mu.Unlock()
	err := how(ctx)
	p.mu.Lock()
	p.closeFailed = p.closeFailed || err != nil
	if p.closedAt == 0 {
		p.closedAt = p.w.now()
	}
	p.mu.Unlock()
	p.w.note("", p, "is closed", err)
	return err
}

// mayLeave reports whether leases and places of the process may stay in the backend,
// because it was killed or its Close returned an error.
func (p *process) mayLeave() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead || p.closeFailed || p.closing && p.w.plan.backend == "quorum"
}

func (p *process) closed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closing
}

func (p *process) id() string { return "process " + strconv.Itoa(p.number) }
