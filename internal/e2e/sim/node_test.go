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
	values *values // of a node that only compares and swaps

	mu       sync.Mutex // protects what follows
	memory   *memlock.Memory
	sessions map[*road]server
	hung     moment // until then it accepts requests, and handles them later
	waiting  []func()
	away     moment // it is down until then
}

// A backend is a place that can fail, and that the checker can read: a node, or a Redis.
type backend interface {
	hang(d time.Duration)
	lose(d time.Duration)
	jump(d time.Duration)
	entry(name string) driver.Entry
}

func newNode(w *world, number int) *node {
	p := w.plan.nodes[number]
	n := &node{w: w, number: number, clock: clock{start: w.start, ppm: p.ppm, ahead: p.ahead}}
	n.values = &values{clock: &n.clock, stamped: w.plan.fates%2 == 1, inboxes: map[string]*road{}}
	n.forgetLocked() // no other goroutine has it yet
	return n
}

// forgetLocked removes all data of the node.
func (n *node) forgetLocked() {
	n.memory = memlock.NewMemory(&memlock.Options{Now: n.clock.now})
	n.sessions = map[*road]server{}
	n.values.forget()
}

// session returns the node's end of a road. A planted bug may replace it.
func (n *node) session(r *road) server {
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

// handle runs a request, or keeps it until the node no longer hangs. It returns false if
// the node is down.
func (n *node) handle(f func()) bool {
	n.mu.Lock()
	now := n.w.now()
	if now < n.away {
		n.mu.Unlock()
		return false
	}
	if now < n.hung {
		n.waiting = append(n.waiting, f)
		n.mu.Unlock()
		return true
	}
	n.mu.Unlock()
	f()
	return true
}

// hang stops the node for a while. Requests that arrive meanwhile are handled then, in
// the order in which they arrived.
func (n *node) hang(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hung = max(n.hung, n.w.now()+d)
	n.w.after(d, func() {
		n.mu.Lock()
		if n.w.now() < n.hung {
			n.mu.Unlock()
			return
		}
		waiting := n.waiting
		n.waiting = nil
		n.mu.Unlock()
		for _, f := range waiting {
			f()
		}
	})
}

// lose ends the node without its data. It is back, empty, after d.
func (n *node) lose(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.away, n.waiting = n.w.now()+d, nil
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
