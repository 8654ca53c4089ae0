package dashboard_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/dashboard"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/memlock"
)

// A site is a dashboard of a memory, and another driver of the same memory.
type site struct {
	*dashboard.Handler
	others engine.Driver
	client *pawl.Client
	log    *lines
}

// newSite returns a site in a bubble. Its first scan is so old that the next page waits
// for a new scan. So each test sees its own changes.
func newSite(t testing.TB, o *dashboard.Options) *site {
	t.Helper()
	memory := memlock.NewMemory(nil)
	s := newSiteOnDriver(t, memory.Driver(), memory, o)
	time.Sleep(2 * time.Second)
	return s
}

func newSiteOnDriver(t testing.TB, d driver.Driver, memory *memlock.Memory, o *dashboard.Options) *site {
	t.Helper()
	return newSiteInNamespace(t, "", d, memory, o)
}

// newSiteInNamespace returns a site of a namespace.
func newSiteInNamespace(t testing.TB, namespace string, d driver.Driver, memory *memlock.Memory, o *dashboard.Options) *site {
	t.Helper()
	s := &site{others: engine.Full(memory.Driver()), log: &lines{}}
	var err error
	s.client, err = pawl.New(d, &pawl.Options{ID: "dashboard", Namespace: namespace})
	noError(t, err)
	if o == nil {
		o = &dashboard.Options{}
	}
	o.Log = slog.New(slog.NewTextHandler(s.log, nil))
	s.Handler, err = dashboard.New(s.client, o)
	noError(t, err)
	t.Cleanup(func() {
		s.Close()
		if err := s.client.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

var noError = basictest.NoError

// lines is the text of a log.
type lines = basictest.Lines

// request sends a request from this host. change may change it before.
func (s *site) request(t testing.TB, method, to string, form url.Values, change func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost:7420/"+to, body)
	r.RemoteAddr = "127.0.0.1:50000"
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// status sends a request, and checks the status of the answer. It returns the body.
func (s *site) status(t testing.TB, want int, method, to string, form url.Values, change func(*http.Request)) string {
	t.Helper()
	var sent *http.Request
	w := s.request(t, method, to, form, func(r *http.Request) {
		if sent = r; change != nil {
			change(r)
		}
	})
	if w.Code != want {
		t.Errorf("%s %s of %s from %s, with the form %v and the header %v: the status is %d, want %d\n%s",
			method, to, sent.Host, sent.RemoteAddr, form, sent.Header, w.Code, want, w.Body)
	}
	return w.Body.String()
}

// get returns a page that exists.
func (s *site) get(t testing.TB, to string) string {
	t.Helper()
	return s.status(t, http.StatusOK, http.MethodGet, to, nil, nil)
}

func wantTexts(t testing.TB, page string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(page, want) {
			t.Errorf("there is no %s in\n%s", want, page)
		}
	}
}

func wantNoTexts(t testing.TB, page string, all ...string) {
	t.Helper()
	for _, not := range all {
		if strings.Contains(page, not) {
			t.Errorf("there is a %s in\n%s", not, page)
		}
	}
}

func claim(name string, pid int) driver.Claim {
	c := servertest.Queued(name)
	c.TTL, c.QueueTTL = 30*time.Second, time.Minute
	c.Owner = driver.Owner{Client: fmt.Sprintf("~%016x", pid), Host: "host", PID: pid, Labels: map[string]string{"job": "nightly"}}
	return c
}

func (s *site) take(t testing.TB, c driver.Claim) driver.Grant {
	t.Helper()
	return servertest.Gets(t, s.others, c)
}

func (s *site) queue(t testing.TB, c driver.Claim) { t.Helper(); servertest.Waits(t, s.others, c) }

func (s *site) release(t testing.TB, c driver.Claim) { t.Helper(); servertest.Releases(t, s.others, c) }

// A stream has the part of a stream that a browser has received.
type stream struct {
	mu     sync.Mutex
	header http.Header
	code   int
	got    bytes.Buffer
	done   chan struct{} // closed when the handler has returned
}

func (s *stream) Header() http.Header { return s.header }
func (s *stream) WriteHeader(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code = code
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.Write(p)
}
func (s *stream) Flush() {}

// take returns the text that has arrived since the last call.
func (s *stream) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.got.Reset()
	return s.got.String()
}

// open opens a stream that ends with ctx.
func (s *site) open(ctx context.Context, to string) *stream { return s.openWith(ctx, to, nil) }

// openWith is open, but change may change the request.
func (s *site) openWith(ctx context.Context, to string, change func(*http.Request)) *stream {
	out := &stream{header: http.Header{}, done: make(chan struct{})}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost:7420/"+to, nil)
	if change != nil {
		change(r)
	}
	go func() {
		defer close(out.done)
		s.ServeHTTP(out, r)
	}()
	return out
}
