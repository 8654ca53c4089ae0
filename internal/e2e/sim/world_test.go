package sim

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/quorumlock"
)

// A world is one schedule that runs.
type world struct {
	plan      *plan
	planted   planted
	start     time.Time
	history   history
	nodes     []backend
	redis     *redisNode // if the plan is over Redis
	processes []*process
	queue     queue
	turns     turns
	terms     terms

	watching context.Context // of watches that last until everything is over
	watchers sync.WaitGroup

	busyUntil atomic.Int64 // a message is under way, or a pause lasts, until then

	eventTimesMu sync.Mutex
	eventTimes   []moment // times at which a message arrived or a pause ended
}

// planted is a bug that a test plants; the zero value has no bug.
type planted struct {
	noEnds bool // nodes accept requests after their end

	// Nodes that compare and swap ignore the window, or do not compare.
	noWindows, noVersions bool
	noHealth              bool // health functions are not called
	onlyFirstName         bool // All takes only its first name
	holdsWhileWaiting     bool // All holds names while it waits
	countsFromAnswer      bool // a term after Confirm counts from the answer

	node    func(n *node, s server) server                      // replaces a node's driver
	client  func(p *process, d rootDriver) rootDriver           // replaces a process' driver
	observe func(o *pawl.Observer)                              // changes the Observer
	run     func(run runFunc) runFunc                           // replaces Election.Run
	handle  func(h map[string]any)                              // changes the content of a handle
	quorum  func(p *process, d []driver.Driver) []driver.Driver // replaces the nodes of a quorum
}

type runFunc = func(ctx context.Context, f func(ctx context.Context) error) error

// rootDriver is the driver of the root package.
type rootDriver interface {
	driver.Driver
	driver.Signaler
	driver.LeaseBreaker
}

func (w *world) now() moment { return time.Since(w.start) }

// after runs f after d, like a message that is under way.
func (w *world) after(d time.Duration, f func()) {
	d = max(d, time.Nanosecond)
	at := int64(w.now() + d)
	for {
		old := w.busyUntil.Load()
		if old >= at || w.busyUntil.CompareAndSwap(old, at) {
			break
		}
	}
	time.AfterFunc(d, func() {
		w.eventTimesMu.Lock()
		w.eventTimes = append(w.eventTimes, w.now())
		w.eventTimesMu.Unlock()
		f()
	})
}

func (w *world) weather() weather {
	if w.now() >= w.faultFreeFrom() {
		return calm()
	}
	return w.plan.weather
}

// faultFreeFrom returns the time from which on there are no more faults.
func (w *world) faultFreeFrom() moment {
	from := w.plan.span
	for _, f := range w.plan.faults {
		if f.kind == "wipe" {
			from = max(from, f.at+f.lasts)
		}
	}
	return from
}

// simulate runs a schedule, and returns its history.
func simulate(t *testing.T, p *plan, bug planted) (h *history) {
	t.Helper()
	w := &world{plan: p, planted: bug}
	w.collectGarbage()
	w.history.w, w.history.detached = w, map[driver.Token]*call{}
	w.terms.byToken = map[driver.Token]*term{}
	w.queue.tickets = tickets{map[string]*place{}, map[string][]*nodeState{}}
	defer func() {
		if r := recover(); r != nil {
			w.history.violations = append(w.history.violations, violation{text: fmt.Sprint(r), to: 1 << 62})
			h = &w.history
		}
	}()
	bubble.Test(t, func(t *testing.T) {
		w.seedRandom(t)
		w.runSchedule()
	})
	return &w.history
}

func (w *world) runSchedule() {
	w.start = time.Now()
	for i := range w.plan.nodes {
		if w.plan.backend == "redis" {
			w.redis = newRedisNode(w)
			w.nodes = append(w.nodes, w.redis)
			continue
		}
		w.nodes = append(w.nodes, newNode(w, i))
	}
	for i := range w.plan.processes {
		w.processes = append(w.processes, w.startProcess(i))
	}
	for _, f := range w.plan.faults {
		w.after(f.at, func() { w.injectFault(f) })
	}
	watching, stopWatchers := context.WithCancel(context.Background())
	w.watching = watching
	defer stopWatchers()
	var users sync.WaitGroup
	for i, p := range w.processes {
		for _, steps := range w.plan.processes[i].sessions {
			time.Sleep(2 * time.Microsecond) // two users must not begin in the same microsecond, the unit of tickets
			users.Go(func() { p.work(steps) })
		}
	}
	users.Wait()
	w.finish(stopWatchers)
}

// startProcess starts a process.
func (w *world) startProcess(i int) *process {
	plan := w.plan.processes[i]
	p := &process{w: w, number: i + 1}
	var d rootDriver
	switch w.plan.backend {
	case "memory":
		r := newLink(p, w.nodes[0].(*node))
		p.links, d = []*link{r}, r
	case "store":
		r, storeDriver := newStore(p, w.nodes[0].(*node))
		p.links, d = []*link{r}, storeDriver
	case "redis":
		d = w.redis.driver(p)
	case "quorum":
		var nodes []driver.Driver
		for _, n := range w.nodes {
			r := newLink(p, n.(*node))
			p.links, nodes = append(p.links, r), append(nodes, r)
		}
		if w.planted.quorum != nil {
			nodes = w.planted.quorum(p, nodes)
		}
		q, err := quorumlock.New(nodes, &quorumlock.Options{Now: func() time.Time { return time.Now().Add(plan.ahead) }})
		if err != nil {
			panic(err)
		}
		d = q.(rootDriver)
	}
	if w.planted.client != nil {
		d = w.planted.client(p, d)
	}
	p.tap = newTap(p, d)
	d = p.tap
	if w.pushesChanges() {
		d = pushingDriver{p.tap, p.links[0]}
	}
	o := &pawl.Options{
		ID: p.id(), TTL: w.plan.baseTTL, HandoffWindow: plan.handoff, Observer: p.observer(),
	}
	locks, err := pawl.New(d, o)
	if err != nil {
		panic(err)
	}
	p.locks = locks
	return p
}

// finish waits until nothing is under way, checks the leftovers, and closes all clients.
func (w *world) finish(stopWatchers func()) {
	for w.now() < w.faultFreeFrom() {
		time.Sleep(w.faultFreeFrom() - w.now())
	}
	w.settle()
	w.checkLeftovers("everything is over")
	w.checkWatchers()
	stopWatchers()
	w.watchers.Wait()
	for _, p := range w.processes {
		within := time.Minute
		if p.isDead() {
			within = time.Second
		}
		p.closeWithin(within, p.close)
		for _, end := range p.onClose {
			end()
		}
	}
	w.checkLeftovers("all clients are closed")
	for int64(w.now()) < w.busyUntil.Load() {
		time.Sleep(time.Duration(w.busyUntil.Load()) - w.now())
	}
	if w.redis != nil {
		w.redis.close()
	}
	time.Sleep(time.Minute)
	w.check()
}
