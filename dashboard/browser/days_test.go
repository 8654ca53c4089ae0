package browser

import (
	"testing"
	"time"
)

// The backend fails while the page is open. The page shows that, keeps its rows, and goes
// on by itself when the backend answers again.
func TestThePageSurvivesAnOutage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newBackend(t, nil), nil)
	w.take(mutex("report", "web-1", 4127))
	b := open(t, w.url, viewSettings{})
	b.until("the page is live", isLive+` && `+rowContains("report", "web-1:4127"))
	w.flaky.down.Store(true)
	b.until("the page shows that", `document.querySelector("#notices .bad").innerText.includes("does not answer")`)
	b.until("it is not live", `document.getElementById("link").dataset.state == "down"`)
	b.until("it keeps its rows", rowContains("report", "web-1:4127"))
	w.take(mutex("import", "web-2", 3380))
	w.flaky.down.Store(false)
	b.until("it goes on", `document.getElementById("notices").innerText == "" && `+isLive+` && `+rowContains("import", "web-2:3380"))
}

// A proxy between the page and the dashboard cuts the stream. The page shows that, and
// opens another stream.
func TestThePageSurvivesACutStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newBackend(t, nil), nil)
	b := open(t, w.url, viewSettings{})
	b.until("the page is live", isLive)
	b.allowFault("net::ERR_") // the browser reports the cut of the stream
	js[bool](b, `globalThis.wasDown = false, new MutationObserver(() => {
		if (document.getElementById("link").dataset.state == "down") wasDown = true;
	}).observe(document.getElementById("link"), {attributes: true}), true`)
	w.server.CloseClientConnections()
	b.until("the page shows that", `wasDown`)
	w.take(mutex("report", "web-1", 4127))
	b.until("it goes on", isLive+` && `+rowContains("report", "web-1:4127"))
}

// The browser's clock is an hour ahead, or behind. No time on the page depends on it.
func TestNoTimeDependsOnTheClockOfTheBrowser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newBackend(t, nil), nil)
	w.take(mutex("report", "web-1", 4127))
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		b := open(t, w.url, viewSettings{clockOffset: off})
		wrong := js[float64](b, `Date.now()`) - float64(time.Now().UnixMilli())
		if wrong*float64(off) < 0 || wrong < 3e6 && wrong > -3e6 {
			t.Fatalf("the clock is wrong by %v ms, want %v", wrong, off)
		}
		b.until("the bar moves", isLive+` && (p => p.value > 0 && p.value < p.max)(`+row("report")+`.querySelector("progress"))`)
		held := js[string](b, row("report")+`.querySelector("[data-head='Held for']").innerText`)
		if !isShort(held) {
			t.Errorf("with a clock that is %v off it is held for %q", off, held)
		}
	}
}

// isShort reports whether a test may have taken the time s.
func isShort(s string) bool {
	d, err := time.ParseDuration(spaceRemover.Replace(s))
	return err == nil && d >= 0 && d < 10*time.Minute
}
