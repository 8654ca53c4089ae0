package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/internal/visible"
)

// A latencyStats has the durations of many equal operations, and their number per second.
type latencyStats struct {
	took      []time.Duration // sorted
	perSecond float64
}

// finish sorts the durations, and computes the rate. in is the duration of the whole
// measurement.
func (p *latencyStats) finish(in time.Duration) {
	slices.Sort(p.took)
	p.perSecond = float64(len(p.took)) / in.Seconds()
}

// quantile returns the longest duration of the fastest part: 0.5 gives the median.
func (p *latencyStats) quantile(part float64) time.Duration {
	if len(p.took) == 0 {
		return 0
	}
	at := int(math.Ceil(part*float64(len(p.took)))) - 1
	return p.took[max(at, 0)]
}

func (p *latencyStats) json() jsonLatency {
	ms := func(part float64) float64 { return float64(p.quantile(part).Microseconds()) / 1000 }
	return jsonLatency{
		Count: len(p.took), PerSecond: math.Round(p.perSecond*10) / 10,
		P50MS: ms(0.5), P90MS: ms(0.9), P99MS: ms(0.99), MaxMS: ms(1),
	}
}

func printBench(out io.Writer, backend string, clients int, cycles, handovers latencyStats) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, clients: %d\n\n", visible.Text(backend), clients)
	t := newTable(&b, "WHAT", "PER SECOND", "MEDIAN", "90%", "99%", "SLOWEST")
	row := func(what string, p latencyStats) {
		if len(p.took) == 0 {
			t.row(what, "-", "-", "-", "-", "-")
			return
		}
		t.row(what, fmt.Sprintf("%.0f", p.perSecond), threeDigits(p.quantile(0.5)), threeDigits(p.quantile(0.9)), threeDigits(p.quantile(0.99)), threeDigits(p.quantile(1)))
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
	var done atomic.Int64
	began, stop, over := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for {
			fmt.Fprintf(v.err, "\r%s", bar(time.Since(began), total, done.Load()))
			select {
			case <-ticker.C:
			case <-stop:
				fmt.Fprint(v.err, "\r\x1b[K") // remove the bar
				return
			}
		}
	}()
	return func() { done.Add(1) }, sync.OnceFunc(func() { close(stop); <-over })
}

// bar returns the line: the part of the time that has passed, and the number of locks.
func bar(elapsed, total time.Duration, done int64) string {
	const width = 40
	part := min(float64(elapsed)/float64(total), 1)
	full := int(part * width)
	return fmt.Sprintf("[%s%s] %3.0f%%  %d locked ", strings.Repeat("#", full), strings.Repeat(" ", width-full), part*100, done)
}
