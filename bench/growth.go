package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// growthOptions are the flags of -growth.
type growthOptions struct {
	loads string // the beginnings of the names of the wanted loads, separated by commas; empty: all
	most  int
	plant string
	keep  string // the folder that keeps the figures of all engines; empty: no file is written
}

// A load is a kind of thing on a server, such as a name. The steps are measured while
// there are more and more of these things.
type load struct {
	name, what string
	most       int                           // the largest number that one machine can make; 0: no limit
	fill       func(g *growing, n int) error // raises the number to n
	steps      []step
}

// A step is done again and again. It leaves everything as it found it.
type step struct {
	name  string
	do    func(g *growing, d driver.Driver, i int) error
	rests time.Duration // how long the step sleeps; the sleep is not counted
}

// growing is a server with a load.
type growing struct {
	url    func(addr string) string
	s      server
	d      driver.Driver // the driver that is measured
	other  driver.Driver // the driver that makes the load
	line   *proxy        // the proxy between far and the server; nil for an engine without a network
	far    driver.Driver // a driver behind line, which counts its bytes; without a line it is d
	n      int
	tokens []driver.Token
	more   []driver.Driver
	stops  []func()
	told   chan struct{}
}

// A cost is the measured cost of one step at one size of its load.
type cost struct {
	N                     int
	Took                  time.Duration // the median time of the step
	Client, Server, Bytes float64       // µs and B, the means
	Err                   string        `json:",omitempty"`
}

func (c cost) cpu() float64 { return c.Client + c.Server }

// A grown step is measured at each size of the load.
type grown struct {
	Load, Step string
	Costs      []cost
}

// sizes are the sizes of each load: the numbers of its names, leases, waiters, watchers
// or clients.
var sizes = []int{1, 10, 100, 1000, 10_000}

// longestFill is the longest time in which a load may be made. If one took longer, the
// next size, ten times as large, is not tried: where the queue is part of an entry, each
// waiter that joins writes all of it, so ten times as much takes a hundred times as long.
const longestFill = 1500 * time.Millisecond

func grow(e engine, o growthOptions) error {
	fmt.Printf("%s, %s, %d cores, load %.1f, %s\n", e.name, runtime.Version(), runtime.NumCPU(), loadAverage(), commit())
	if o.plant != "" {
		fmt.Printf("planted: %s\n", o.plant)
	}
	var all []grown
	for _, l := range loads() {
		if !begins(l.name, o.loads) {
			continue
		}
		began := look()
		rows, err := growLoad(e, l, o)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		if why := unquiet(began, look()); why != "" {
			fmt.Fprintf(os.Stderr, "bench: the machine was not quiet during %s: %s\n", l.name, why)
		}
		growthTable(os.Stdout, l, rows)
		all = append(all, rows...)
	}
	growthList(os.Stdout, all)
	if o.keep == "" {
		return nil
	}
	if err := keepGrowth(o.keep, e.name, all); err != nil {
		return err
	}
	return growthOverview(os.Stdout, o.keep)
}

// growLoad measures the steps of a load on a server of its own.
func growLoad(e engine, l load, o growthOptions) ([]grown, error) {
	g, err := startGrowing(e, o.plant)
	if err != nil {
		return nil, err
	}
	defer g.stop()
	rows := make([]grown, len(l.steps))
	for i, s := range l.steps {
		rows[i] = grown{Load: l.name, Step: s.name}
	}
	for _, n := range sizes {
		if n > o.most || l.most > 0 && n > l.most {
			break
		}
		began := time.Now()
		if err := g.fillTo(l, n); err != nil {
			return nil, fmt.Errorf("%d %s: %w", n, l.name, err)
		}
		took := time.Since(began)
		runtime.GC()
		for i, s := range l.steps {
			rows[i].Costs = append(rows[i].Costs, g.measure(s))
		}
		if took > longestFill && n < sizes[len(sizes)-1] {
			fmt.Printf("(%s: %d took %v to make; more are not measured)\n", l.name, n, took.Round(100*time.Millisecond))
			break
		}
	}
	return slices.DeleteFunc(rows, func(r grown) bool { return len(r.Costs) == 0 }), nil
}

func startGrowing(e engine, plant string) (*growing, error) {
	s, err := e.start()
	if err != nil {
		return nil, err
	}
	g := &growing{url: e.url, s: s, told: make(chan struct{}, 1<<16)}
	if g.d, err = g.open(s.address()); err != nil {
		g.stop()
		return nil, err
	}
	g.far = g.d
	if _, local := s.(place); !local {
		if g.line, err = startProxy(s.address(), 0); err == nil {
			g.far, err = g.open(g.line.addr())
		}
		if err != nil {
			g.stop()
			return nil, err
		}
	}
	if plant != "" {
		if g.d, err = planted(g.d, plant); err == nil {
			g.far, err = planted(g.far, plant)
		}
		if err != nil {
			g.stop()
			return nil, err
		}
	}
	return g, nil
}

func (g *growing) open(addr string) (driver.Driver, error) {
	d, err := driver.Open(context.Background(), g.url(addr))
	if err != nil {
		return nil, err
	}
	// In Pawl, all waiters and holders receive signals all the time.
	if l, ok := driver.As[driver.Signaler](d); ok {
		g.stops = append(g.stops, l.Listen(func(driver.Signal) {}))
	}
	return d, nil
}

func (g *growing) stop() {
	for _, stop := range g.stops {
		stop()
	}
	for _, d := range append(g.more, g.far, g.d) {
		if d != nil {
			_ = d.Close()
		}
	}
	if g.line != nil {
		g.line.stop()
	}
	g.s.stop()
}

// fillTo makes the load. The client that made the load closes afterwards, so that it does
// no work during the measurement. The claims last without it.
func (g *growing) fillTo(l load, n int) (err error) {
	if g.other, err = driver.Open(context.Background(), g.url(g.s.address())); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.other.Close()) }()
	err = l.fill(g, n)
	g.n = n
	return err
}

// A step is repeated for stepTime, but at least stepLeast and at most stepMost times.
const (
	stepTime  = 400 * time.Millisecond
	stepLeast = 5
	stepMost  = 300
)

// measure repeats a step until the figures are reliable.
func (g *growing) measure(s step) cost {
	c, err := g.costOf(s)
	if err != nil {
		c.Err = firstLine(err)
	}
	return c
}

func (g *growing) costOf(s step) (c cost, err error) {
	c.N = g.n
	if err = s.do(g, g.d, 0); err != nil { // the first call prepares what all later calls use
		return c, err
	}
	var each []time.Duration
	used := startMeter(g.s)
	for began := time.Now(); len(each) < stepLeast || time.Since(began) < stepTime && len(each) < stepMost; {
		at := time.Now()
		if err = s.do(g, g.d, len(each)+1); err != nil {
			return c, err
		}
		each = append(each, time.Since(at)-s.rests)
	}
	c.Client, c.Server = used.perCycle(int64(len(each)))
	slices.Sort(each)
	c.Took = each[len(each)/2]
	c.Bytes, err = g.count(s)
	return c, err
}

// count counts the bytes of a step, both ways.
func (g *growing) count(s step) (float64, error) {
	if g.line == nil {
		return 0, nil
	}
	const times = 5
	if err := s.do(g, g.far, 0); err != nil {
		return 0, err
	}
	before := g.line.sent.Load()
	for i := range times {
		if err := s.do(g, g.far, i+1); err != nil {
			return 0, err
		}
	}
	return float64(g.line.sent.Load()-before) / times, nil
}

var (
	errNotTold   = errors.New("a watch did not tell of a change within 5 s")
	errNotPushed = errors.New("the server pushes no changes")
)

// hears waits until a watch has reported a change.
func (g *growing) hears() error {
	select {
	case <-g.told:
		return nil
	case <-time.After(5 * time.Second):
		return errNotTold
	}
}
