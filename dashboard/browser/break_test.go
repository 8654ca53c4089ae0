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
	b := open(t, w.url, viewSettings{})
	b.until("the lease is shown", rowContains("report", "web-1:4127"))
	b.follow(`#rows th a`)
	b.until("the page is live", isLive+` && document.getElementById("holders").innerText.includes("web-1:4127")`)
	b.follow(`#holders a.button`)
	b.fill("#typed", "reporl")
	b.allowFault("status of 422")
	b.follow("button.danger")
	if h := w.holders("report"); len(h) != 1 || h[0].Fence != g.Fence {
		t.Fatalf("it was broken without its name: %v", h)
	}
	if alert := js[string](b, `document.querySelector("[role=alert]").innerText`); !strings.Contains(alert, "Nothing was broken") {
		t.Errorf("the alert is %q", alert)
	}
	b.fill("#typed", "report")
	b.follow("button.danger")
	b.until("the page reports the break", `document.querySelector("main [role=status]").innerText.includes("is broken")`)
	b.until("the delay is shown", `document.getElementById("state").innerText.includes("Closed")`)
	b.until("the delay is over", `!document.getElementById("state").innerText.includes("Closed")`)
	w.take(next) // it sends its claim again, as waiters do
	b.until("the next one gets it", `document.getElementById("holders").innerText.includes("web-2:3380")`)
	b.until("the history has it", `document.getElementById("past").innerText.includes("broken")`)
	for _, want := range []string{"lease broken", "name=report", fmt.Sprint("fence=", g.Fence), "by=127.0.0.1"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s: %s", want, &log)
		}
	}
}
