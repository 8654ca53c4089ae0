package browser

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/recordtest"
)

// An error in a page fails a test. The other tests depend on that.
func TestAnErrorInAPageFailsTheTest(t *testing.T) {
	t.Parallel()
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "img-src 'none'")
		_, _ = w.Write([]byte(`<!doctype html><title>bad</title><img src="x.png">
			<p style="color:#ccc;background:#fff">pale</p>
			<script>console.error("said"); setTimeout(() => { alert("asked"); document.title = "answered"; throw new Error("thrown") })</script>`))
	}))
	defer bad.Close()
	r := &recordtest.Recorder{TB: t}
	b := open(r, bad.URL, viewSettings{})
	b.until("the dialog was answered", `document.title == "answered"`)
	b.wantAccessible("the bad page")
	failures := strings.Join(r.End(), "\n")
	for _, want := range []string{"said", "asked", "thrown", "img-src", "image-alt", "html-has-lang", "color-contrast"} {
		if !strings.Contains(failures, want) {
			t.Errorf("no failure mentions %s:\n%s", want, failures)
		}
	}
}
