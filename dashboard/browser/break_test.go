package browser

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/dashboard"
)

// An operator breaks a lease: from the list to the name, to the form that asks for the
// name, and back to the page. There the delay counts down, and the next claim gets the
// lock.
func TestALeaseIsBroken(t *testing.T) {
	t.Parallel()
	var log lines
	w := newWorld(t, newBackend(t, nil), &dashboard.Options{
		AllowBreak: true, BreakDelay: 3 * time.Second, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	g := w.take(mutex("report", "web-1", 4127))
	next := mutex("report", "web-2", 3380)
	w.queue(next)
	b := open(t, w.url, look{})
	b.until("the lease is shown", rowSays("report", "web-1:4127"))
	b.follow(`#rows th a`)
	b.until("the page is live", live+` && document.getElementById("holders").innerText.includes("web-1:4127")`)
	b.follow(`#holders a.button`)
	b.fill("#typed", "reporl")
	b.allow("status of 422")
	b.follow("button.danger")
	if h := w.holders("report"); len(h) != 1 || h[0].Fence != g.Fence {
		t.Fatalf("without its name it was broken: %v", h)
	}
	if said := js[string](b, `document.querySelector("[role=alert]").innerText`); !strings.Contains(said, "Nothing was broken") {
		t.Errorf("it says %q", said)
	}
	b.fill("#typed", "report")
	b.follow("button.danger")
	b.until("it says so", `document.querySelector("main [role=status]").innerText.includes("is broken")`)
	b.until("the delay is shown", `document.getElementById("state").innerText.includes("Closed")`)
	b.until("the delay is over", `!document.getElementById("state").innerText.includes("Closed")`)
	w.take(next) // it sends its claim again, as waiters do
	b.until("the next one gets it", `document.getElementById("holders").innerText.includes("web-2:3380")`)
	b.until("it is remembered", `document.getElementById("past").innerText.includes("broken")`)
	for _, want := range []string{"lease broken", "name=report", fmt.Sprint("fence=", g.Fence), "by=127.0.0.1"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %s: %s", want, &log)
		}
	}
}
