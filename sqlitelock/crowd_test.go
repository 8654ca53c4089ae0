package sqlitelock

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkCrowd has four processes whose clients all wait for one name. It measures what
// a grant costs with such a long queue.
func BenchmarkCrowd(b *testing.B) {
	const processes, seconds = 4, 5
	for _, clients := range []int{1, 75, 250} {
		b.Run(strconv.Itoa(processes*clients), func(b *testing.B) {
			b.Setenv(childClients, strconv.Itoa(clients))
			b.Setenv(childSeconds, strconv.Itoa(seconds))
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
				must(fmt.Fscan(strings.NewReader(<-said), &grants, &refused, &longest))(b)
				total, troubles, worst = total+grants, troubles+refused, max(worst, longest)
			}
			b.ReportMetric(float64(total)/seconds, "grants/s")
			b.ReportMetric(float64(troubles), "errors")
			b.ReportMetric(float64(worst), "longest-wait-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}
