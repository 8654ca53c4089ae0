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
	calmRatio     = 8           // the calm phase, without faults, is one eighth of the duration
	warmUp        = time.Second // before the calm phase, because new processes are slow
	idsPerProcess = 10_000_000  // IDs reserved for the claims of one process
)

// A controller runs the workers, and causes the faults.
type controller struct {
	Options
	targets   []string
	slots     []*slot
	running   sync.WaitGroup // of the slots
	processes atomic.Int64   // the number of started processes
	draining  atomic.Bool

	mu        sync.Mutex // protects the fields below
	lines     *history.Writer
	writeErr  error // the first error of a write to the history
	registers map[string]*register
	leases    int
	faults    int

	// The server, if the run started it. One goroutine at a time uses these fields.
	server      *exec.Cmd
	serverEnded chan struct{}
}

// A slot is a worker with all its processes. Only its own goroutine starts them.
type slot struct {
	*controller
	worker int
	proxy  *proxy.Proxy // nil if the network has no faults

	faultMu sync.Mutex // held while a fault of the worker lasts

	mu         sync.Mutex
	process    *process
	ready      bool                     // the process has opened its clients
	openClaims map[int64]*history.Claim // the claims of the process that are not over
	ack        chan string              // receives the kind of each fault that the worker itself causes
}

// Run runs workers for Duration, or until ctx ends.
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
	return errors.Join(err, c.writeErr, c.lines.Flush())
}

func (c *controller) now() int64 { return worker.Now() - c.Epoch }

func (c *controller) write(l history.Line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeLocked(l)
}

func (c *controller) writeLocked(l history.Line) {
	if err := c.lines.Write(l); err != nil && c.writeErr == nil {
		c.writeErr = err
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
	calm := max(c.Duration/calmRatio, 3*time.Second)
	if err == nil {
		sleep(ctx, warmUp)
		c.runPhase(ctx, history.Calm, calm, func(context.Context) {})
		c.runPhase(ctx, history.Faults, c.Duration-calm, c.doFaults)
	}
	return errors.Join(err, c.drain())
}

// startSlots starts all workers.
func (c *controller) startSlots() error {
	network := slices.ContainsFunc(c.Faults, func(k string) bool { return slices.Contains(history.NetworkFaults, k) })
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
		c.running.Go(s.runProcesses)
	}
	return nil
}

// waitReady waits until all workers have opened their clients.
func (c *controller) waitReady(ctx context.Context) error {
	const timeout = 60 * time.Second
	isStarting := func(s *slot) bool { _, ready := s.current(); return !ready }
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		switch {
		case ctx.Err() != nil, !slices.ContainsFunc(c.slots, isStarting):
			return nil //nolint:nilerr // the last line of the history reports the interruption
		case time.Since(begun) > timeout:
			return fmt.Errorf("the workers could not open the database within %v", timeout)
		}
	}
}

// runPhase runs f with a ctx that ends after d, and returns when both have ended.
func (c *controller) runPhase(ctx context.Context, phase string, d time.Duration, f func(context.Context)) {
	if ctx.Err() != nil || d <= 0 {
		return
	}
	p := history.Phase{Phase: phase, From: c.now()}
	phaseCtx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var faults sync.WaitGroup
	faults.Go(func() { f(phaseCtx) })
	c.reportProgress(phaseCtx, phase, d)
	faults.Wait()
	p.To = c.now()
	c.write(history.Line{Phase: &p})
}

// reportProgress reports the progress of a phase until ctx ends.
func (c *controller) reportProgress(ctx context.Context, phase string, length time.Duration) {
	begun := time.Now()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if c.OnProgress != nil {
			c.mu.Lock()
			p := Progress{Phase: phase, Elapsed: time.Since(begun), Length: length, Leases: c.leases, Faults: c.faults}
			c.mu.Unlock()
			c.OnProgress(p)
		}
	}
}

// drain waits until all workers have ended, and records remaining holders and waiters.
func (c *controller) drain() error {
	p := history.Phase{Phase: history.Drain, From: c.now()}
	c.draining.Store(true)
	c.each(func(p *process) { p.order(worker.Order{Do: "drain"}) })
	ctx, cancel := context.WithTimeout(context.Background(), 4*c.TTL+60*time.Second)
	defer cancel()
	go func() { c.running.Wait(); cancel() }()
	c.reportProgress(ctx, history.Drain, 0)
	var err error
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = errors.New("some workers did not end in time and were killed")
		c.each((*process).kill)
		c.running.Wait()
	}
	if c.Leftovers != nil {
		left, leftErr := c.Leftovers()
		err = errors.Join(err, leftErr)
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
