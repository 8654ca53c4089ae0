package browser

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/recordtest"
)

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
	r := &recordtest.Recorder{TB: t}
	b := open(r, bad.URL, look{})
	b.until("the dialog was answered", `document.title == "answered"`)
	b.accessible("the bad page")
	said := strings.Join(r.End(), "\n")
	for _, want := range []string{"said", "asked", "thrown", "img-src", "image-alt", "html-has-lang", "color-contrast"} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing was said of %s:\n%s", want, said)
		}
	}
}
