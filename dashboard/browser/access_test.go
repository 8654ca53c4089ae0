package browser

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/pawl-go/pawl/dashboard"
)

// axe finds no serious violation in any page, in both themes and at the width of a phone.
func TestThePagesAreAccessible(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	w := newWorld(t, s.backend, &dashboard.Options{AllowBreak: true})
	b := open(t, w.url, viewSettings{})
	b.until("the lease is shown before it is late", isLive+` && `+rowContains("warm-cache", "web-3:677"))
	s.advance(0)
	b.until("it is late", row("warm-cache")+`.classList.contains("late")`)
	for _, p := range []struct{ path, ready string }{
		{"", rowContains("nightly-report", "reports-1:4127")},
		{"name?name=nightly-report", `document.getElementById("holders").innerText.includes("reports-1:4127")`},
		{fmt.Sprintf("break?name=nightly-report&fence=%d", s.holders("nightly-report")[0].Fence), `document.getElementById("typed") != null`},
		{"health", `document.querySelector("h1") != null`},
	} {
		b.emulate(viewSettings{})
		b.visit(w.url+p.path, http.StatusOK)
		b.until("the page is complete", p.ready)
		b.wantAccessible(p.path + " light")
		b.emulate(viewSettings{dark: true})
		b.wantAccessible(p.path + " dark")
		b.emulate(viewSettings{dark: true, phone: true})
		b.wantAccessible(p.path + " phone")
		if wide := js[int](b, `document.scrollingElement.scrollWidth - innerWidth`); wide > 0 {
			t.Errorf("%s: on a phone it is %d pixels wider than the window", p.path, wide)
		}
	}
	for _, e := range []string{"name?name=", "nowhere"} {
		b.allowFault("status of 4")
		b.visit(w.url+e, map[string]int64{"nowhere": 404, "name?name=": 400}[e])
		b.wantAccessible(e)
	}
}

// The keyboard can do everything that a mouse does: it reaches the search through the
// skip link, and then a name. The page always shows the focus.
func TestTheKeyboardReachesEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newBackend(t, nil), nil)
	w.take(mutex("report", "web-1", 4127))
	b := open(t, w.url, viewSettings{})
	b.until("the lease is shown", isLive+` && `+rowContains("report", "web-1:4127"))
	b.do(chromedp.KeyEvent(kb.Tab))
	if got := js[string](b, `document.activeElement.innerText`); got != "Skip to the content" {
		t.Errorf("the first focus is on %q", got)
	}
	reached := map[string]bool{}
	for range 40 {
		b.do(chromedp.KeyEvent(kb.Tab))
		at := js[string](b, `(document.activeElement.innerText || document.activeElement.id || "") + ""`)
		if at == "report" {
			break
		}
		reached[at] = true
		if !js[bool](b, `document.activeElement == document.body || getComputedStyle(document.activeElement).outlineStyle != "none"`) {
			t.Errorf("the focus on %q is not visible", at)
		}
	}
	for _, want := range []string{"prefix", "Search", "theme"} {
		if !reached[want] && !(want == "theme" && reached["Dark theme"]) {
			t.Errorf("the keyboard does not reach %s, but %v", want, reached)
		}
	}
	w.queue(mutex("report", "web-2", 3380)) // redraws the row, and the focus stays in it
	b.until("the waiter is shown", rowContains("report", "web-2:3380"))
	if at := js[string](b, `document.activeElement.innerText`); at != "report" {
		t.Errorf("when the row changed, the focus went to %q, want report", at)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until("the name's page is there", `location.search == "?name=report" && `+isLive)
}

// The theme is the system's until a reader chooses one. Then every page has the chosen
// theme.
func TestEveryPageHasTheThemeThatAReaderChose(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newBackend(t, nil), nil)
	b := open(t, w.url, viewSettings{dark: true})
	ground := `getComputedStyle(document.body).backgroundColor`
	dark := js[string](b, ground)
	b.click("#theme")
	b.until("it is light", ground+` != `+quote(dark))
	light := js[string](b, ground)
	b.visit(w.url+"health", http.StatusOK)
	if got := js[string](b, ground); got != light {
		t.Errorf("the next page is %s, want %s", got, light)
	}
	b.click("#theme")
	b.until("it is dark again", ground+` == `+quote(dark))
}
