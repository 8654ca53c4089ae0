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
)

// A world is a backend with a dashboard of it.
type world struct {
	*backend

	seen   *flaky // the dashboard's own driver
	server *httptest.Server
	url    string // of the page of all names
}

// newWorld serves the dashboard of a backend. o may be nil.
func newWorld(t testing.TB, b *backend, o *dashboard.Options) *world {
	t.Helper()
	w := &world{backend: b, seen: &flaky{Driver: b.memory.Driver()}}
	w.server = httptest.NewServer(serve(t, w.seen, o))
	t.Cleanup(w.server.Close) // before the dashboard's Close, which ends what it still serves
	t.Cleanup(w.server.CloseClientConnections)
	w.url = w.server.URL + "/"
	return w
}

// serve is a dashboard over a driver.
func serve(t testing.TB, d driver.Driver, o *dashboard.Options) *dashboard.Handler {
	t.Helper()
	c, err := pawl.New(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	if o == nil {
		o = &dashboard.Options{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	h, err := dashboard.New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.Close()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// row is the row of a name in the list, for scripts.
func row(name string) string {
	return `[...document.querySelectorAll("#rows > tr")].find(r => r.dataset.key == ` + quote(url.QueryEscape(name)) + `)`
}

// rowSays is true while a name has a row in which all of these words stand.
func rowSays(name string, words ...string) string {
	e := "(r => r"
	for _, w := range words {
		e += " && r.innerText.includes(" + quote(w) + ")"
	}
	return e + ")(" + row(name) + ")"
}

// live is true while the page is kept up to date.
const live = `document.getElementById("link").dataset.state == "up"`
