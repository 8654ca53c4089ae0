//go:build unix

// Package dashboard_test measures the dashboard over Redis.
package dashboard_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/dashboard"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/cputime"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/redislock"
)

// live is a dashboard of a Redis server, over loopback. changer is another driver of the
// same server, with which the benchmark takes and releases locks.
type live struct {
	*httptest.Server
	redis   *redistest.Server
	changer engine.Driver
}

func newLive(b *testing.B) *live {
	b.Helper()
	l := &live{redis: redistest.Start(b)}
	open := func() engine.Driver {
		d, err := redislock.Open(context.Background(), "redis://"+l.redis.Addr)
		if err != nil {
			b.Fatal(err)
		}
		return engine.Full(d)
	}
	l.changer = open()
	client, err := pawl.New(open(), nil)
	if err != nil {
		b.Fatal(err)
	}
	h, err := dashboard.New(client, &dashboard.Options{MaxStreams: 200})
	if err != nil {
		b.Fatal(err)
	}
	l.Server = httptest.NewServer(h)
	b.Cleanup(func() {
		h.Close()
		l.Server.Close()
		_ = client.Close()
		_ = l.changer.Close()
	})
	return l
}

// hold takes n names without renewal, so that only the dashboard's commands are counted.
func (l *live) hold(b *testing.B, n int) {
	b.Helper()
	for i := range n {
		c := claim(fmt.Sprintf("shard:%05d", i), i)
		c.TTL = time.Hour
		if _, err := l.changer.Acquire(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}

// view opens a stream, like a browser. messages receives the messages of the stream.
func (l *live) view(b *testing.B, query string) (messages <-chan string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, l.URL+"/events?"+query, nil)
	if err != nil {
		b.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		b.Fatal(answer, err)
	}
	got := make(chan string, 1024)
	go func() {
		defer close(got)
		defer answer.Body.Close()
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			if lines.Text() != "" {
				got <- lines.Text()
			}
		}
	}()
	return got
}

// commands returns how many commands the server has run, including commands in scripts.
// It excludes pings, with which the clients check the server.
func (l *live) commands(b *testing.B) (n int) {
	b.Helper()
	for _, found := range regexp.MustCompile(`cmdstat_(\w+):calls=(\d+)`).FindAllStringSubmatch(l.redis.Do("INFO", "commandstats"), -1) {
		if calls, err := strconv.Atoi(found[2]); err == nil && found[1] != "ping" && found[1] != "info" {
			n += calls
		}
	}
	return n
}

// BenchmarkTimeUntilThePageShowsAGrant measures the time from a request of another client
// until the stream of a page shows its grant.
func BenchmarkTimeUntilThePageShowsAGrant(b *testing.B) {
	for _, names := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("names=%d", names), func(b *testing.B) {
			l := newLive(b)
			l.hold(b, names)
			messages := l.view(b, "view=name&name=job")
			<-messages
			time.Sleep(3 * time.Second) // until the dashboard watches the name
			var all []time.Duration
			for i := 0; b.Loop(); i++ {
				c := claim("job", i)
				c.Owner.Client = fmt.Sprintf("worker-%d", i)
				c.Owner.PID = 100_000 + i
				begun := time.Now()
				if _, err := l.changer.Acquire(b.Context(), c); err != nil {
					b.Fatal(err)
				}
				for m := range messages {
					if strings.Contains(m, strconv.Itoa(c.Owner.PID)) {
						break
					}
				}
				all = append(all, time.Since(begun))
				if err := l.changer.Release(b.Context(), driver.LeaseRef{Name: c.Name, Token: c.Token}); err != nil {
					b.Fatal(err)
				}
				time.Sleep(150 * time.Millisecond)
			}
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(all[len(all)-1].Microseconds())/1000, "slowest-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkViewers measures the cost of an idle dashboard: the share of a core, including
// the readers of its streams, and the commands that the server runs.
func BenchmarkViewers(b *testing.B) {
	for _, leases := range []int{0, 1000} {
		for _, viewers := range []int{0, 1, 100} {
			b.Run(fmt.Sprintf("leases=%d/viewers=%d", leases, viewers), func(b *testing.B) {
				l := newLive(b)
				l.hold(b, leases)
				for range viewers {
					messages := l.view(b, "view=list")
					go func() {
						for range messages {
						}
					}()
				}
				time.Sleep(5 * time.Second)
				const period = 10 * time.Second
				for b.Loop() {
					commandsBefore, used := l.commands(b), cputime.Used()
					time.Sleep(period)
					used = cputime.Used() - used
					b.ReportMetric(float64(l.commands(b)-commandsBefore)/period.Seconds(), "commands/s")
					b.ReportMetric(100*used.Seconds()/period.Seconds(), "%core")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

func claim(name string, pid int) driver.Claim {
	return driver.Claim{
		Name: name, Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited,
		TTL: 30 * time.Second, QueueTTL: time.Minute, Queue: true,
		Owner: driver.Owner{Client: string(rune('a' + pid%26)), Host: "host", PID: pid, Labels: map[string]string{"job": "nightly"}},
	}
}
