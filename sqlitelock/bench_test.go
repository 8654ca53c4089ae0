package sqlitelock

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-go/pawl/drivertest"
)

func perSecond(b *testing.B, cycles int) {
	b.ReportMetric(float64(cycles)/b.Elapsed().Seconds(), "cycles/s")
}

// BenchmarkCycle acquires and releases a name, in one goroutine.
func BenchmarkCycle(b *testing.B) {
	d := open(b, file(b), nil)
	b.ReportAllocs()
	for b.Loop() {
		cycle(b, d, "report:nightly")
	}
	perSecond(b, b.N)
}

// BenchmarkCycleOfManyNames does so with one of 100 000 names each time.
func BenchmarkCycleOfManyNames(b *testing.B) {
	d := open(b, file(b), nil)
	for i := range 100_000 {
		cycle(b, d, "job:"+strconv.Itoa(i))
	}
	i := 0
	for b.Loop() {
		cycle(b, d, "job:"+strconv.Itoa(i*7919%100_000))
		i++
	}
	perSecond(b, b.N)
}

// BenchmarkWriters measures goroutines with names of their own, with one driver and with
// two.
func BenchmarkWriters(b *testing.B) {
	for _, writers := range []int{2, 64} {
		for _, drivers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%dOn%d", writers, drivers), func(b *testing.B) {
				path := file(b)
				var ds []*lockDriver
				for range drivers {
					ds = append(ds, open(b, path, nil))
				}
				b.ResetTimer()
				var done sync.WaitGroup
				for i := range writers {
					done.Go(func() {
						for range b.N {
							cycle(b, ds[i%drivers], "job:"+strconv.Itoa(i))
						}
					})
				}
				done.Wait()
				perSecond(b, writers*b.N)
			})
		}
	}
}

// BenchmarkProcesses lets processes with names of their own write as fast as they can,
// for three seconds.
func BenchmarkProcesses(b *testing.B) {
	for _, n := range []int{2, 8} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			path := file(b)
			said := make(chan string)
			for range n {
				_, out := spawn(b, "hammer", path)
				go func() {
					out.Scan()
					said <- out.Text()
				}()
			}
			total, least, worst := 0, math.MaxInt, 0
			for range n {
				var cycles, took int
				must(fmt.Fscan(strings.NewReader(<-said), &cycles, &took))(b)
				total, least, worst = total+cycles, min(least, cycles), max(worst, took)
			}
			b.ReportMetric(float64(total)/3, "cycles/s")
			b.ReportMetric(float64(least)*float64(n)/float64(total), "least/fair")
			b.ReportMetric(float64(worst), "worst-µs")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkLook measures a poll for signals that finds nothing.
func BenchmarkLook(b *testing.B) {
	d := open(b, file(b), nil)
	b.ReportAllocs()
	for b.Loop() {
		_ = d.table.pollSignals(ctx)
	}
}

func BenchmarkOpenAndClose(b *testing.B) {
	path := file(b)
	open(b, path, nil)
	for b.Loop() {
		d, err := concrete(OpenFile(ctx, path, nil))
		noError(b, err)
		noError(b, d.Close())
	}
}

// BenchmarkBesideHolders measures the cost of a step beside many holders of its name.
func BenchmarkBesideHolders(b *testing.B) {
	drivertest.BenchmarkHolders(b, open(b, file(b), nil), nil, 1, 100, 1000)
}

// BenchmarkAll measures pawl.All beside one lock.
func BenchmarkAll(b *testing.B) { drivertest.BenchmarkAll(b, open(b, file(b), nil)) }
