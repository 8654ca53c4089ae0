package browser

import (
	"io"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/dashboard"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

// A world is a backend with a dashboard.
type world struct {
	*backend

	flaky  *flakyDriver // the dashboard's own driver
	server *httptest.Server
	url    string // of the page of all names
}

// newWorld serves the dashboard of a backend. o may be nil.
func newWorld(t testing.TB, b *backend, o *dashboard.Options) *world {
	t.Helper()
	w := &world{backend: b, flaky: &flakyDriver{Driver: engine.Full(b.memory.Driver())}}
	w.server = httptest.NewServer(serve(t, w.flaky, o))
	t.Cleanup(w.server.Close) // runs before the dashboard's Close, which ends open requests
	t.Cleanup(w.server.CloseClientConnections)
	w.url = w.server.URL + "/"
	return w
}

// serve returns a dashboard of a driver.
func serve(t testing.TB, d driver.Driver, o *dashboard.Options) *dashboard.Handler {
	t.Helper()
	c := must(pawl.New(d, nil))(t)
	if o == nil {
		o = &dashboard.Options{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	h := must(dashboard.New(c, o))(t)
	t.Cleanup(func() {
		h.Close()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// row returns a script expression for the row of a name in the list.
func row(name string) string {
	return `[...document.querySelectorAll("#rows > tr")].find(r => r.dataset.key == ` + quote(url.QueryEscape(name)) + `)`
}

// rowContains returns an expression: the row of a name contains all of these words.
func rowContains(name string, words ...string) string {
	e := "(r => r"
	for _, w := range words {
		e += " && r.innerText.includes(" + quote(w) + ")"
	}
	return e + ")(" + row(name) + ")"
}

// isLive is an expression: the page receives updates.
const isLive = `document.getElementById("link").dataset.state == "up"`
