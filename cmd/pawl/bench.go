package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/internal/visible"
)

const (
	benchName  = "pawl-bench"     // the lock of a running bench; it measures pawl-bench:0, pawl-bench:1, ...
	benchTTL   = 30 * time.Second // after kill -9, no other bench can run for this time
	maxClients = 256

	maxExtension = time.Minute // the longest extension of a phase without a result
)

func newBench(v *output, loc *location) *cobra.Command {
	duration, clients, asJSON := 10*time.Second, 4, false
	cmd := &cobra.Command{
		Use:   "bench [flags]",
		Short: "Measure how fast the database locks",
		Long: `Bench measures how fast locks are on your database, from here. For half of
--duration each client locks and releases a name of its own: a cycle. Then all
clients lock one name: a hand-over is the time from the call that releases it
until the next client has it. Each client has its own connection, like a
separate process.

A half without any result lasts until there is one, but at most another minute.
The names begin with "pawl-bench", and one bench runs at a time. Bench leaves
nothing held. It loads the database: do not run it where that does harm.

With --json it prints one object: backend, clients, cycles and handovers, each
with count, per_second, p50_ms, p90_ms, p99_ms and max_ms.

The exit code is 0, 64 for wrong usage, 69 if the database is unavailable, or 75
if another bench is running.`,
		Example: `  pawl bench --url redis://cache.example:6379
  pawl bench --duration 1m --clients 16 --json`,
		Args: cobra.MatchAll(noArgs, func(cmd *cobra.Command, _ []string) error {
			switch {
			case duration < 100*time.Millisecond || duration > time.Hour:
				return usageError(cmd, fmt.Errorf("--duration is %v; allowed: 100ms to 1h", duration))
			case clients < 1 || clients > maxClients:
				return usageError(cmd, fmt.Errorf("--clients is %d; allowed: 1 to %d", clients, maxClients))
			}
			return nil
		}),
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, _, err := loc.findURL(cmd)
			if err != nil {
				return err
			}
			if isMemory(url) {
				return usageError(cmd, errors.New("mem: keeps locks in the memory of one client; there is nothing to measure"))
			}
			ctx, stop := v.interruptible(cmd)
			defer stop()
			b := &bench{v: v, phase: duration / 2, asJSON: asJSON}
			defer b.close()
			err = b.run(ctx, url, loc.options(), clients)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().Var((*seconds)(&duration), "duration", "how long to measure, in all")
	cmd.Flags().Var((*number)(&clients), "clients", "`N`, how many clients lock at the same time")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object of JSON")
	return cmd
}

type bench struct {
	v       *output
	phase   time.Duration // the duration of each of the two phases
	asJSON  bool
	clients []*pawl.Client
}

// close releases the leases that a signal or an error has left.
func (b *bench) close() {
	var closing sync.WaitGroup
	for _, c := range b.clients {
		closing.Go(func() { _ = closeSoon(c) })
	}
	closing.Wait()
}

func (b *bench) run(ctx context.Context, url string, o *pawl.Options, clients int) error {
	for range clients {
		c, err := pawl.Open(ctx, url, o)
		if err != nil {
			return err
		}
		b.clients = append(b.clients, c)
	}
	benchLease, err := b.clients[0].Mutex(benchName, pawl.WithTTL(benchTTL)).TryLock(ctx)
	if held, ok := errors.AsType[*pawl.HeldError](err); ok {
		return &exit{code: exitHeld, err: fmt.Errorf("another bench is running: %s", words.ErrorText(held))}
	}
	if err != nil {
		return err
	}
	defer benchLease.Release(ctx) //nolint:errcheck // otherwise it expires
	tick, end := showProgress(b.v, 2*b.phase)
	defer end()
	cycles, err := b.measure(ctx, tick, func(i int) string { return fmt.Sprintf("%s:%d", benchName, i) })
	if err != nil {
		return err
	}
	var handovers latencyStats
	if len(b.clients) > 1 {
		if handovers, err = b.measure(ctx, tick, func(int) string { return benchName + ":0" }); err != nil {
			return err
		}
	}
	end()
	backend := b.clients[0].Properties().Location
	if b.asJSON {
		return printJSONLine(b.v.out, jsonBench{backend, len(b.clients), cycles.json(), handovers.json()})
	}
	return printBench(b.v.out, backend, len(b.clients), cycles, handovers)
}

// measure makes each client lock and release its name until the phase is over. If the
// clients share a name, it measures the time from each release to the next grant. A phase
// without a result lasts until the first result.
func (b *bench) measure(ctx context.Context, tick func(), name func(client int) string) (latencyStats, error) {
	ctx, cancel := context.WithTimeout(ctx, b.phase+maxExtension)
	defer cancel()
	var hasResult, phaseOver atomic.Bool
	phaseTimer := time.AfterFunc(b.phase, func() {
		if phaseOver.Store(true); hasResult.Load() {
			cancel()
		}
	})
	defer phaseTimer.Stop()
	addResult := func() {
		tick()
		if hasResult.Store(true); phaseOver.Load() {
			cancel()
		}
	}
	type result struct {
		durations []time.Duration
		err       error
	}
	shared := len(b.clients) > 1 && name(0) == name(1)
	results := make(chan result, len(b.clients))
	began := time.Now()
	var released atomic.Pointer[time.Time] // the last release of a shared name, until the next grant
	for i, c := range b.clients {
		go func() {
			var r result
			m := c.Mutex(name(i), pawl.WithTTL(benchTTL))
			for r.err == nil {
				start := time.Now()
				lease, err := m.Lock(ctx)
				if err != nil {
					r.err = err
					break
				}
				if from := released.Swap(nil); shared && from != nil {
					r.durations = append(r.durations, time.Since(*from))
					addResult()
				}
				now := time.Now()
				released.Store(&now)
				r.err = lease.Release(context.WithoutCancel(ctx))
				if !shared {
					r.durations = append(r.durations, time.Since(start))
					addResult()
				}
			}
			results <- r
		}()
	}
	var all latencyStats
	var firstErr error
	for range b.clients {
		r := <-results
		all.durations = append(all.durations, r.durations...)
		if firstErr == nil && !(deadlinePassed(ctx) || ctx.Err() != nil) || !errors.Is(r.err, ctx.Err()) && !errors.Is(r.err, context.DeadlineExceeded) {
			firstErr = r.err
			cancel() // stop the other clients
		}
	}
	all.perSecond = float64(len(all.durations)) / time.Since(began).Seconds()
	slices.Sort(all.durations)
	return all, firstErr
}

// A latencyStats has the durations of many equal operations, and their number per second.
type latencyStats struct {
	durations []time.Duration // sorted
	perSecond float64
}

// quantile returns the longest duration of the fastest part: the median, if part is 0.5.
func (p *latencyStats) quantile(part float64) time.Duration {
	if len(p.durations) == 0 {
		return 0
	}
	at := int(math.Ceil(part*float64(len(p.durations)))) - 1
	return p.durations[max(at, 0)]
}

func (p *latencyStats) json() jsonLatency {
	ms := func(part float64) float64 { return float64(p.quantile(part).Microseconds()) / 1000 }
	return jsonLatency{
		Count: len(p.durations), PerSecond: math.Round(p.perSecond*10) / 10,
		P50MS: ms(0.5), P90MS: ms(0.9), P99MS: ms(0.99), MaxMS: ms(1),
	}
}

func printBench(out io.Writer, backend string, clients int, cycles, handovers latencyStats) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, clients: %d\n\n", visible.Text(backend), clients)
	t := newTable(&b, "WHAT", "PER SECOND", "MEDIAN", "90%", "99%", "SLOWEST")
	row := func(what string, p latencyStats) {
		if len(p.durations) == 0 {
			t.writeRow(what, "-", "-", "-", "-", "-")
			return
		}
		t.writeRow(what, fmt.Sprintf("%.0f", p.perSecond), threeDigits(p.quantile(0.5)), threeDigits(p.quantile(0.9)), threeDigits(p.quantile(0.99)), threeDigits(p.quantile(1)))
	}
	row("cycle", cycles)
	row("hand-over", handovers)
	t.Flush()
	_, err := io.WriteString(out, b.String())
	return err
}

// threeDigits rounds a duration to about three digits.
func threeDigits(d time.Duration) string {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

// showProgress shows a bar on a terminal until the caller calls end. tick counts a lock
// that the caller has taken.
func showProgress(v *output, total time.Duration) (tick, end func()) {
	if !v.onTerminal {
		return func() {}, func() {}
	}
	var locked atomic.Int64
	began, stop, removed := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(removed)
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for {
			fmt.Fprintf(v.err, "\r%s", progressBar(time.Since(began), total, locked.Load()))
			select {
			case <-ticker.C:
			case <-stop:
				fmt.Fprint(v.err, "\r\x1b[K") // remove the bar
				return
			}
		}
	}()
	return func() { locked.Add(1) }, sync.OnceFunc(func() { close(stop); <-removed })
}

// progressBar returns the line: the passed part of the time, and the number of locks.
func progressBar(elapsed, total time.Duration, locked int64) string {
	const width = 40
	part := min(float64(elapsed)/float64(total), 1)
	full := int(part * width)
	return fmt.Sprintf("[%s%s] %3.0f%%  %d locked ", strings.Repeat("#", full), strings.Repeat(" ", width-full), part*100, locked)
}
