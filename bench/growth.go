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
	loads   string // prefixes of the names of the wanted loads, separated by commas; empty for all
	maxSize int
	plant   string
	keep    string // the folder for the figures of all engines; empty for none
}

// A load is a kind of thing on a server, such as a name. The steps are measured at
// several numbers of these things.
type load struct {
	name, description string
	maxSize           int                                // the largest number that one machine can make; 0 for no limit
	fill              func(g *loadedServer, n int) error // raises the number to n
	steps             []step
}

// A step is repeated, so it must restore the state that it found.
type step struct {
	name      string
	do        func(g *loadedServer, d driver.Driver, i int) error
	sleepTime time.Duration // the time for which the step sleeps, which does not count
}

// A loadedServer is a server with a load.
type loadedServer struct {
	url      func(addr string) string
	server   server
	driver   driver.Driver // the driver that is measured
	loader   driver.Driver // the driver that makes the load
	proxy    *proxy        // the proxy between viaProxy and the server; nil for an engine without a network
	viaProxy driver.Driver // a driver behind the proxy, which counts its bytes; the same as driver if proxy is nil
	size     int
	tokens   []driver.Token
	clients  []driver.Driver
	stops    []func()
	changes  chan struct{} // receives a value for each report of a watch
}

// A cost is the measured cost of one step at one size of its load.
type cost struct {
	N                     int
	Took                  time.Duration // the median time of the step
	Client, Server, Bytes float64       // µs and B, the means
	Err                   string        `json:",omitempty"`
}

func (c cost) cpu() float64 { return c.Client + c.Server }

// stepCosts are the costs of a step at each size of the load.
type stepCosts struct {
	Load, Step string
	Costs      []cost
}

// sizes are the numbers of names, leases, waiters, watchers or clients in a load.
var sizes = []int{1, 10, 100, 1000, 10_000}

// If making a load took longer than maxFillTime, the next size, ten times as large, is
// not tried. It may take a hundred times as long, because some backends store the whole
// queue in an entry, which each new waiter writes.
const maxFillTime = 1500 * time.Millisecond

func measureGrowth(e engine, o growthOptions) error {
	fmt.Printf("%s, %s, %d cores, load %.1f, %s\n", e.name, runtime.Version(), runtime.NumCPU(), loadAverage(), commit())
	if o.plant != "" {
		fmt.Printf("planted: %s\n", o.plant)
	}
	var all []stepCosts
	for _, l := range loads() {
		if !hasPrefix(l.name, o.loads) {
			continue
		}
		began := readCPU()
		rows, err := measureLoad(e, l, o)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		if reason := unquietReason(began, readCPU()); reason != "" {
			fmt.Fprintf(os.Stderr, "bench: the machine was not quiet during %s: %s\n", l.name, reason)
		}
		printGrowthTable(os.Stdout, l, rows)
		all = append(all, rows...)
	}
	printGrowingSteps(os.Stdout, all)
	if o.keep == "" {
		return nil
	}
	if err := saveGrowth(o.keep, e.name, all); err != nil {
		return err
	}
	return printGrowthOverview(os.Stdout, o.keep)
}

// measureLoad measures the steps of a load on a new server.
func measureLoad(e engine, l load, o growthOptions) ([]stepCosts, error) {
	g, err := startLoadedServer(e, o.plant)
	if err != nil {
		return nil, err
	}
	defer g.stop()
	rows := make([]stepCosts, len(l.steps))
	for i, s := range l.steps {
		rows[i] = stepCosts{Load: l.name, Step: s.name}
	}
	for _, n := range sizes {
		if n > o.maxSize || l.maxSize > 0 && n > l.maxSize {
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
		if took > maxFillTime && n < sizes[len(sizes)-1] {
			fmt.Printf("(%s: %d took %v to make; larger sizes are not measured)\n", l.name, n, took.Round(100*time.Millisecond))
			break
		}
	}
	return slices.DeleteFunc(rows, func(r stepCosts) bool { return len(r.Costs) == 0 }), nil
}

func startLoadedServer(e engine, plant string) (*loadedServer, error) {
	s, err := e.start()
	if err != nil {
		return nil, err
	}
	g := &loadedServer{url: e.url, server: s, changes: make(chan struct{}, 1<<16)}
	if g.driver, err = g.open(s.address()); err != nil {
		g.stop()
		return nil, err
	}
	g.viaProxy = g.driver
	if _, local := s.(localServer); !local {
		if g.proxy, err = startProxy(s.address(), 0); err == nil {
			g.viaProxy, err = g.open(g.proxy.addr())
		}
		if err != nil {
			g.stop()
			return nil, err
		}
	}
	if plant != "" {
		if g.driver, err = planted(g.driver, plant); err == nil {
			g.viaProxy, err = planted(g.viaProxy, plant)
		}
		if err != nil {
			g.stop()
			return nil, err
		}
	}
	return g, nil
}

func (g *loadedServer) open(addr string) (driver.Driver, error) {
	d, err := driver.Open(context.Background(), g.url(addr))
	if err != nil {
		return nil, err
	}
	// Pawl's client always listens to signals.
	if l, ok := driver.As[driver.Signaler](d); ok {
		g.stops = append(g.stops, l.Listen(func(driver.Signal) {}))
	}
	return d, nil
}

func (g *loadedServer) stop() {
	for _, stop := range g.stops {
		stop()
	}
	for _, d := range append(g.clients, g.viaProxy, g.driver) {
		if d != nil {
			_ = d.Close()
		}
	}
	if g.proxy != nil {
		g.proxy.stop()
	}
	g.server.stop()
}

// fillTo makes the load. Then it closes the driver that made the load, so that this
// driver does no work during the measurement. The claims last without the driver.
func (g *loadedServer) fillTo(l load, n int) (err error) {
	if g.loader, err = driver.Open(context.Background(), g.url(g.server.address())); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.loader.Close()) }()
	err = l.fill(g, n)
	g.size = n
	return err
}

// A step is repeated for stepTime, but at least minRepeats and at most maxRepeats times.
const (
	stepTime   = 400 * time.Millisecond
	minRepeats = 5
	maxRepeats = 300
)

// measure repeats a step until the figures are reliable.
func (g *loadedServer) measure(s step) cost {
	c, err := g.costOf(s)
	if err != nil {
		c.Err = firstLine(err)
	}
	return c
}

func (g *loadedServer) costOf(s step) (c cost, err error) {
	c.N = g.size
	if err = s.do(g, g.driver, 0); err != nil { // prepares connections and caches for the other calls
		return c, err
	}
	var each []time.Duration
	cpu := startCPUMeter(g.server)
	for began := time.Now(); len(each) < minRepeats || time.Since(began) < stepTime && len(each) < maxRepeats; {
		at := time.Now()
		if err = s.do(g, g.driver, len(each)+1); err != nil {
			return c, err
		}
		each = append(each, time.Since(at)-s.sleepTime)
	}
	c.Client, c.Server = cpu.perCycle(int64(len(each)))
	slices.Sort(each)
	c.Took = each[len(each)/2]
	c.Bytes, err = g.countBytes(s)
	return c, err
}

// countBytes counts the bytes of a step in both directions.
func (g *loadedServer) countBytes(s step) (float64, error) {
	if g.proxy == nil {
		return 0, nil
	}
	const times = 5
	if err := s.do(g, g.viaProxy, 0); err != nil {
		return 0, err
	}
	before := g.proxy.sentBytes.Load()
	for i := range times {
		if err := s.do(g, g.viaProxy, i+1); err != nil {
			return 0, err
		}
	}
	return float64(g.proxy.sentBytes.Load()-before) / times, nil
}

var (
	errNoChange  = errors.New("the watch did not report a change within 5 s")
	errNotPushed = errors.New("the server pushes no changes")
)

// waitChange waits until a watch reports a change.
func (g *loadedServer) waitChange() error {
	select {
	case <-g.changes:
		return nil
	case <-time.After(5 * time.Second):
		return errNoChange
	}
}
