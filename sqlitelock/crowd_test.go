package sqlitelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// What a child of the crowd is told in its environment.
const (
	crowdClients = "PAWL_SQLITE_TEST_CLIENTS"
	crowdSeconds = "PAWL_SQLITE_TEST_SECONDS"
)

// childCrowds lets many clients lock one name again and again, each with a driver of its own as if it were a
// process, and says how often they did once all of them had been at it for a while, what was refused, and how
// long the longest waited.
func childCrowds(path string) {
	clients, _ := strconv.Atoi(os.Getenv(crowdClients))
	seconds, _ := strconv.Atoi(os.Getenv(crowdSeconds))
	run, stop := context.WithCancel(ctx)
	var counting atomic.Bool
	var grants, refused, longest atomic.Int64
	var all sync.WaitGroup
	for range clients {
		d, err := Open(ctx, path, nil)
		if err != nil {
			panic(err)
		}
		c, err := pawl.New(d, &pawl.Options{Observer: &pawl.Observer{}})
		if err != nil {
			panic(err)
		}
		all.Go(func() {
			for run.Err() == nil {
				began := time.Now()
				l, err := c.Mutex("crowd").Lock(run)
				switch {
				case err == nil:
					if counting.Load() {
						grants.Add(1)
						if took := int64(time.Since(began)); took > longest.Load() {
							longest.Store(took)
						}
					}
					err = l.Release(ctx)
				case run.Err() != nil:
					err = nil
				}
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
				if err != nil && !errors.Is(err, context.Canceled) {
					refused.Add(1)
				}
			}
			if err := c.Close(ctx); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		})
	}
	fmt.Println("ready")
	time.Sleep(3 * time.Second)
	counting.Store(true)
	time.Sleep(time.Duration(seconds) * time.Second)
	fmt.Println(grants.Load(), refused.Load(), time.Duration(longest.Load()).Milliseconds())
	stop()
	all.Wait()
}

// BenchmarkCrowd has four processes whose clients all wait for one name: what a grant costs when the queue is
// as long as that.
func BenchmarkCrowd(b *testing.B) {
	const processes, seconds = 4, 5
	for _, clients := range []int{1, 75, 250} {
		b.Run(strconv.Itoa(processes*clients), func(b *testing.B) {
			b.Setenv(crowdClients, strconv.Itoa(clients))
			b.Setenv(crowdSeconds, strconv.Itoa(seconds))
			path := file(b)
			said := make(chan string)
			for range processes {
				_, out := spawn(b, "crowd", path)
				go func() {
					out.Scan()
					out.Scan()
					said <- out.Text()
				}()
			}
			var total, troubles, worst int
			for range processes {
				var grants, refused, longest int
				if _, err := fmt.Fscan(strings.NewReader(<-said), &grants, &refused, &longest); err != nil {
					b.Fatal(err)
				}
				total, troubles, worst = total+grants, troubles+refused, max(worst, longest)
			}
			b.ReportMetric(float64(total)/seconds, "grants/s")
			b.ReportMetric(float64(troubles), "errors")
			b.ReportMetric(float64(worst), "longest-wait-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}
