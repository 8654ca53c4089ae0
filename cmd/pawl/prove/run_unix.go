//go:build unix

package prove

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/cmd/pawl/prove/proxy"
	"github.com/pawl-go/pawl/cmd/pawl/prove/worker"
)

const (
	calmRatio  = 8           // the calm phase, which measures the usual rate, is one part in this many of the time
	warmUp     = time.Second // before the calm part: processes that have just started are slow
	idsOfALife = 10_000_000  // IDs that are set aside for the claims of one process
)

// A controller runs the workers, and does the faults.
type controller struct {
	Options
	targets  []string
	slots    []*slot
	all      sync.WaitGroup // the slots
	lives    atomic.Int64   // processes that were started
	draining atomic.Bool

	mu        sync.Mutex // protects the fields below
	lines     *history.Writer
	failed    error // the error of a failed write
	registers map[string]*register
	leases    int
	faults    int

	// The server that the run has started. Only one goroutine at a time uses them.
	server      *exec.Cmd
	serverEnded chan struct{}
}

// A slot is a worker through all its lives. Only its own goroutine starts processes.
type slot struct {
	*controller
	worker int
	proxy  *proxy.Proxy // nil if the network has no faults

	busy sync.Mutex // one fault at a time

	mu      sync.Mutex
	process *process
	ready   bool
	open    map[int64]*history.Claim
	ack     chan string // the fault that a worker said it does
}

// Run runs workers until ctx ends or the time is over.
func Run(ctx context.Context, o Options) error {
	c := &controller{Options: o, registers: map[string]*register{}, lines: history.NewWriter(o.History)}
	c.Epoch = worker.Now()
	c.targets, _ = proxy.Split(c.URL)
	for _, n := range o.Names {
		c.registers[n.Name] = &register{}
	}
	defer c.stopServer()
	if err := c.startServer(ctx); err != nil {
		return err
	}
	run := o.Run
	if o.Begin != nil {
		if err := o.Begin(ctx, &run); err != nil {
			return err
		}
	}
	run.Format, run.Begun = history.Format, time.Now().Format(time.RFC3339)
	run.Seed, run.Workers, run.TTL, run.Faults, run.Planted, run.Names = o.Seed, o.Workers, int64(o.TTL), o.Faults, o.Planted, o.Names
	c.write(history.Line{Run: &run})
	done := make(chan struct{})
	var watches sync.WaitGroup
	watches.Go(func() {
		worker.WatchPauses(done, &c.Config, -1, func(f *history.Fault) { c.write(history.Line{Fault: f}) })
	})
	err := c.run(ctx)
	close(done)
	watches.Wait()
	end := history.End{At: c.now(), Interrupted: ctx.Err() != nil}
	if err != nil {
		end.Error = err.Error()
	}
	c.write(history.Line{End: &end})
	return errors.Join(err, c.failed, c.lines.Flush())
}

func (c *controller) now() int64 { return worker.Now() - c.Epoch }

func (c *controller) write(l history.Line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeLocked(l)
}

func (c *controller) writeLocked(l history.Line) {
	if err := c.lines.Write(l); err != nil && c.failed == nil {
		c.failed = err
	}
}

func (c *controller) run(ctx context.Context) error {
	if err := c.startSlots(); err != nil {
		return err
	}
	defer func() {
		for _, s := range c.slots {
			if s.proxy != nil {
				s.proxy.Close()
			}
		}
	}()
	err := c.waitReady(ctx)
	calm := max(c.For/calmRatio, 3*time.Second)
	if err == nil {
		sleep(ctx, warmUp)
		c.spend(ctx, history.Calm, calm, func(context.Context) {})
		c.spend(ctx, history.Faults, c.For-calm, c.doFaults)
	}
	return errors.Join(err, c.endPhase())
}

// startSlots starts all workers.
func (c *controller) startSlots() error {
	network := slices.ContainsFunc(c.Faults, func(k string) bool { return slices.Contains(history.OfNetwork, k) })
	for i := range c.Workers {
		s := &slot{controller: c, worker: i, ack: make(chan string, 16)}
		if network {
			var err error
			if s.proxy, err = proxy.Start(c.targets); err != nil {
				return err
			}
		}
		c.slots = append(c.slots, s)
	}
	for _, s := range c.slots {
		c.all.Go(s.live)
	}
	return nil
}

// waitReady waits until all workers have opened their clients.
func (c *controller) waitReady(ctx context.Context) error {
	const patience = 60 * time.Second
	isStarting := func(s *slot) bool { _, ready := s.current(); return !ready }
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		switch {
		case ctx.Err() != nil, !slices.ContainsFunc(c.slots, isStarting):
			return nil //nolint:nilerr // the run says that it was interrupted
		case time.Since(begun) > patience:
			return fmt.Errorf("the workers could not open the database within %v", patience)
		}
	}
}

// spend runs a phase of the length d, and beside during the phase.
func (c *controller) spend(ctx context.Context, phase string, d time.Duration, beside func(context.Context)) {
	if ctx.Err() != nil || d <= 0 {
		return
	}
	p := history.Phase{Phase: phase, From: c.now()}
	within, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var besides sync.WaitGroup
	besides.Go(func() { beside(within) })
	c.progress(within, phase, d)
	besides.Wait() // every fault is over
	p.To = c.now()
	c.write(history.Line{Phase: &p})
}

// progress says now and then how far the phase is, until ctx ends.
func (c *controller) progress(ctx context.Context, phase string, of time.Duration) {
	begun := time.Now()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if c.Done != nil {
			c.mu.Lock()
			p := Progress{Phase: phase, At: time.Since(begun), Of: of, Leases: c.leases, Faults: c.faults}
			c.mu.Unlock()
			c.Done(p)
		}
	}
}

// endPhase drains all workers, and looks at what is left.
func (c *controller) endPhase() error {
	p := history.Phase{Phase: history.Drain, From: c.now()}
	c.draining.Store(true)
	c.each(func(p *process) { p.order(worker.Order{Do: "drain"}) })
	ctx, cancel := context.WithTimeout(context.Background(), 4*c.TTL+60*time.Second)
	defer cancel()
	go func() { c.all.Wait(); cancel() }()
	c.progress(ctx, history.Drain, 0)
	var err error
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = errors.New("workers did not end: they were killed")
		c.each((*process).kill)
		c.all.Wait()
	}
	if c.Left != nil {
		left, failed := c.Left()
		err = errors.Join(err, failed)
		for _, l := range left {
			l.At = c.now()
			c.write(history.Line{Left: &l})
		}
	}
	p.To = c.now()
	c.write(history.Line{Phase: &p})
	return err
}

// each calls do for the process of each worker.
func (c *controller) each(do func(p *process)) {
	for _, s := range c.slots {
		if p, _ := s.current(); p != nil {
			do(p)
		}
	}
}
