package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/dashboard"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

func TestAStreamSendsChangesAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		first, second := claim("job", 1), claim("job", 2)
		s.take(t, first)
		time.Sleep(10 * time.Second)
		all, one := s.open(t.Context(), "events?view=list"), s.open(t.Context(), "events?view=name&name=job")
		time.Sleep(time.Second + 50*time.Millisecond) // between two scans
		for _, live := range []*stream{all, one} {
			wantTexts(t, live.take(), "data: {", "host:1", `"now":`)
		}
		s.queue(t, second)
		time.Sleep(200 * time.Millisecond)
		for _, live := range []*stream{all, one} {
			wantTexts(t, live.take(), "host:2")
		}
		s.release(t, first)
		time.Sleep(200 * time.Millisecond)
		wantTexts(t, one.take(), "host:2", "released")
		wantTexts(t, all.take(), "host:2")
	})
}

func TestAStreamIsQuietWhileNothingHappens(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		c := claim("job", 1)
		c.TTL = time.Hour
		s.take(t, c)
		live := s.open(t.Context(), "events?view=list")
		time.Sleep(10 * time.Second)
		live.take()
		time.Sleep(time.Minute)
		if got := live.take(); got == "" || strings.Trim(got, ": quiet\n") != "" {
			t.Errorf("in a minute without events the stream sent\n%s\nwant only comments", got)
		}
	})
}

func TestAStreamEndsWithItsBrowserAndWithTheDashboard(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &dashboard.Options{MaxStreams: 1})
		ctx, leave := context.WithCancel(t.Context())
		gone := s.open(ctx, "events?view=list")
		time.Sleep(time.Second)
		if w := s.request(t, http.MethodGet, "events?view=list", nil, nil); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("a stream beyond MaxStreams got the status %d, want 503 with Retry-After", w.Code)
		}
		leave()
		<-gone.done
		stays := s.open(t.Context(), "events?view=list")
		time.Sleep(time.Second)
		wantTexts(t, stays.take(), "data: ")
		s.Close()
		<-stays.done
	})
}

func TestAStreamWithoutAViewIsRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		for _, q := range []string{"", "?view=x", "?view=name", "?view=name&name=a%00"} {
			s.status(t, http.StatusBadRequest, http.MethodGet, "events"+q, nil, nil)
		}
	})
}

// A failingDriver cannot list names while fails is true.
type failingDriver struct {
	engine.Driver
	fails atomic.Bool
}

func (d *failingDriver) List(ctx context.Context, prefix string) iter.Seq2[driver.Entry, error] {
	if d.fails.Load() {
		return func(yield func(driver.Entry, error) bool) { yield(driver.Entry{}, errors.New("connection <refused>")) }
	}
	return d.Driver.List(ctx, prefix)
}

func TestThePageShowsThatTheBackendHasNeverAnswered(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := memlock.NewMemory(nil)
		d := &failingDriver{Driver: engine.Full(memory.Driver())}
		d.fails.Store(true)
		s := newSiteOnDriver(t, d, memory, nil)
		time.Sleep(2 * time.Second)
		page := s.get(t, "")
		wantTexts(t, page, "The backend does not answer.", "This has been so for ", "Pawl keeps asking.", "Nothing was seen yet.")
		wantNoTexts(t, page, "The page shows what it read before that")
	})
}

func TestAStreamShowsAnOutage(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := memlock.NewMemory(nil)
		d := &failingDriver{Driver: engine.Full(memory.Driver())}
		s := newSiteOnDriver(t, d, memory, nil)
		s.take(t, claim("job", 1))
		live := s.open(t.Context(), "events?view=list")
		time.Sleep(2 * time.Second)
		wantTexts(t, live.take(), "host:1")
		d.fails.Store(true)
		time.Sleep(3 * time.Second)
		wantTexts(t, live.take(), "The backend does not answer.", `connection \u0026#60;refused\u0026#62;`)
		page := s.get(t, "")
		wantTexts(t, page, "The backend does not answer.", "This has been so for ", "The page shows what it read before that.", "host:1")
		d.fails.Store(false)
		time.Sleep(3 * time.Second)
		wantTexts(t, live.take(), `"notices":""`)
	})
}

// A slowDriver lists only when the test allows it.
type slowDriver struct {
	engine.Driver
	lists chan struct{}
}

func (d *slowDriver) List(ctx context.Context, prefix string) iter.Seq2[driver.Entry, error] {
	select {
	case <-d.lists:
	case <-ctx.Done():
	}
	return d.Driver.List(ctx, prefix)
}

// A page of an earlier process may show anything. So the first message has all parts,
// even parts that are empty, or unchanged since before the first scan.
func TestAStreamThatBeginsBeforeTheFirstScanSendsAllParts(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := memlock.NewMemory(nil)
		d := &slowDriver{engine.Full(memory.Driver()), make(chan struct{})}
		s := newSiteOnDriver(t, d, memory, nil)
		all, one := s.open(t.Context(), "events?view=list"), s.open(t.Context(), "events?view=name&name=job")
		time.Sleep(time.Second)
		if got := all.take() + one.take(); got != "" {
			t.Errorf("before the first scan the streams sent\n%s\nwant nothing", got)
		}
		close(d.lists)
		time.Sleep(time.Second)
		wantTexts(t, all.take(), `"notices":""`, `"how":`, `"counts":`, `"rows":`, `"pager":""`)
		wantTexts(t, one.take(), `"notices":""`, `"how":`, `"state":`, `"holders":`, `"queue":`, `"blocks":""`, `"past":`)
	})
}

// With 5 000 waiters, the page is still small enough to send.
func TestAQueueOfThousandsIsCounted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		s.take(t, claim("job", 1))
		for i := range 5000 {
			s.queue(t, claim("job", 2+i))
		}
		time.Sleep(6 * time.Second)
		wantTexts(t, s.get(t, ""), "<b>5000</b> waiters", "and 4997 more")
		if page := s.get(t, "name?name=job"); len(page) > 200_000 || !strings.Contains(page, "and 4800 more") {
			t.Errorf("the page has %d bytes", len(page))
		}
	})
}

func BenchmarkPageOfTenThousandNames(b *testing.B) {
	memory := memlock.NewMemory(nil)
	s := newSiteOnDriver(b, memory.Driver(), memory, nil)
	for i := range 10_000 {
		c := claim(fmt.Sprintf("shard:%05d", i), i)
		c.TTL = time.Hour
		if _, err := s.others.Acquire(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
	all := func() bool { return strings.Contains(s.get(b, ""), "1–50 of 10000") }
	for !all() {
		time.Sleep(time.Second) // the first scan began before the last name was taken
	}
	for b.Loop() {
		if !all() {
			b.Fatal("the page does not show all names")
		}
	}
}

// While the backend does not answer, the stream marks its information as old, and the
// page marks each lease whose time is over.
func TestOldInformationIsMarked(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := memlock.NewMemory(nil)
		d := &failingDriver{Driver: engine.Full(memory.Driver())}
		s := newSiteOnDriver(t, d, memory, nil)
		s.take(t, claim("job", 1)) // for 30 s
		list, name := s.open(t.Context(), "events?view=list"), s.open(t.Context(), "events?view=name&name=job")
		time.Sleep(10 * time.Second)
		for _, was := range []string{list.take(), name.take()} {
			wantTexts(t, was, `"parts"`)
			wantNoTexts(t, was, `"stale"`)
		}
		d.fails.Store(true)
		time.Sleep(time.Minute)
		wantTexts(t, list.take(), `"stale":true`)
		wantTexts(t, name.take(), `"stale":true`, "It was held by 1 lease when it was last read.")
		page := s.get(t, "name?name=job")
		wantTexts(t, page, "It was held by 1 lease when it was last read.", ">over unless renewed</span>")
		wantNoTexts(t, page, "Held by", ">0s</span>")
		d.fails.Store(false)
		time.Sleep(20 * time.Second)
		wantNoTexts(t, s.get(t, "name?name=job"), "over unless renewed")
	})
}
