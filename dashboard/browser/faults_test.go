package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A recorder records the calls that would fail a test.
type recorder struct {
	testing.TB
	said     []string
	cleanups []func()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

// The other tests depend on this: an error in a page fails the test.
func TestAFaultOfAPageIsSeen(t *testing.T) {
	t.Parallel()
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "img-src 'none'")
		_, _ = w.Write([]byte(`<!doctype html><title>bad</title><img src="x.png">
			<p style="color:#ccc;background:#fff">pale</p>
			<script>console.error("said"); setTimeout(() => { alert("asked"); document.title = "answered"; throw new Error("thrown") })</script>`))
	}))
	defer bad.Close()
	r := &recorder{TB: t}
	b := open(r, bad.URL, look{})
	b.until("the dialog was answered", `document.title == "answered"`)
	b.accessible("the bad page")
	for _, f := range r.cleanups {
		f()
	}
	said := strings.Join(r.said, "\n")
	for _, want := range []string{"said", "asked", "thrown", "img-src", "image-alt", "html-has-lang", "color-contrast"} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing was said of %s:\n%s", want, said)
		}
	}
}
