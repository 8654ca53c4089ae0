package sim

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

// server is the interface of a node's drivers.
type server interface {
	driver.Driver
	driver.Signaler
	driver.LeaseBreaker
	driver.FenceRaiser
}

// A node is one independent backend: memory, its own clock, and a session for each
// process.
type node struct {
	w      *world
	number int
	clock  clock
	values *nodeStore // of a node that only compares and swaps

	mu        sync.Mutex // protects what follows
	memory    *memlock.Memory
	sessions  map[*link]server
	hungUntil moment // it accepts requests until then, but does not handle them
	pending   []func()
	downUntil moment
}

// A backend can fail, and the checker can read it: a node, or a Redis.
type backend interface {
	hang(d time.Duration)
	loseData(d time.Duration)
	jump(d time.Duration)
	entry(name string) driver.Entry
}

func newNode(w *world, number int) *node {
	p := w.plan.nodes[number]
	n := &node{w: w, number: number, clock: clock{start: w.start, ppm: p.ppm, ahead: p.ahead}}
	n.values = &nodeStore{clock: &n.clock, stamped: w.plan.fateSeed%2 == 1, inboxes: map[string]*link{}}
	n.forgetLocked() // no other goroutine has it yet
	return n
}

// forgetLocked removes all data of the node.
func (n *node) forgetLocked() {
	n.memory = memlock.NewMemory(&memlock.Options{Now: n.clock.now})
	n.sessions = map[*link]server{}
	n.values.forget()
}

// session returns the driver by which a link uses the node. A planted bug may replace it.
func (n *node) session(r *link) server {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.sessions[r]
	if s == nil {
		s = engine.Full(n.memory.Driver())
		if plant := n.w.planted.node; plant != nil {
			s = plant(n, s)
		}
		s.Listen(r.signal)
		n.sessions[r] = s
	}
	return s
}

// handle runs a request, at once or when the node no longer hangs. It returns false if
// the node is down.
func (n *node) handle(f func()) bool {
	n.mu.Lock()
	now := n.w.now()
	if now < n.downUntil {
		n.mu.Unlock()
		return false
	}
	if now < n.hungUntil {
		n.pending = append(n.pending, f)
		n.mu.Unlock()
		return true
	}
	n.mu.Unlock()
	f()
	return true
}

// hang stops the node for a while. After that, it handles the requests that arrived
// meanwhile, in order.
func (n *node) hang(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hungUntil = max(n.hungUntil, n.w.now()+d)
	n.w.after(d, func() {
		n.mu.Lock()
		if n.w.now() < n.hungUntil {
			n.mu.Unlock()
			return
		}
		pending := n.pending
		n.pending = nil
		n.mu.Unlock()
		for _, f := range pending {
			f()
		}
	})
}

// loseData stops the node and removes its data. After d the node is back.
func (n *node) loseData(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.downUntil, n.pending = n.w.now()+d, nil
	n.forgetLocked()
}

func (n *node) jump(by time.Duration) { n.clock.jump(by) }

// entry returns the node's entry for a name, read without the network.
func (n *node) entry(name string) driver.Entry {
	if n.w.plan.backend == "store" {
		return n.values.entry(name)
	}
	n.mu.Lock()
	d := n.memory.Driver()
	n.mu.Unlock()
	defer d.Close()
	e, err := d.Inspect(context.Background(), name)
	if err != nil {
		n.w.violated(name, "memory cannot be read: %v", err)
	}
	return e
}
