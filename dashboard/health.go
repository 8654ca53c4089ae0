package dashboard

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/markup"
	"github.com/pawl-go/pawl/internal/overview"
	"github.com/pawl-go/pawl/internal/visible"
)

// maxFindingsAge is the time for which pages reuse the doctor's findings.
const maxFindingsAge = 30 * time.Second

// findings has the last findings of the doctor. The doctor runs on demand, once for all
// pages.
type findings struct {
	mu   sync.Mutex // protects all below; held while the doctor runs
	at   time.Time
	list []pawl.Finding
	err  error
}

func (f *findings) read(ctx context.Context, c *pawl.Client) ([]pawl.Finding, time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at.IsZero() || time.Since(f.at) > maxFindingsAge {
		ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
		defer cancel()
		f.list, f.err = c.Diagnose(ctx)
		f.at = time.Now()
	}
	return f.list, f.at, f.err
}

func (h *Handler) healthPage(w http.ResponseWriter, r *http.Request) {
	m, c := h.latestView(r), h.overview.Client()
	found, at, err := h.health.read(h.ctx, c)
	took, pinged := h.ping(r.Context())
	h.writePage(w, r, page{title: "Health", navLink: "health", body: []markup.Part{
		region("div", "notices", map[string]markup.HTML{"notices": m.notices()}),
		text("h1", "Health"),
		text("h2", "The doctor"), findingsOf(found, err), text("p", "Examined "+preciseDuration(m.now.Sub(at).Truncate(time.Second))+" ago.", class("aside")),
		text("h2", "The way to the backend"), markup.El("dl", class("facts card"), h.connectionFacts(m, took, pinged)),
		text("h2", "Renewals"), overdueList(m), h.failedRenewals(),
		text("h2", "What this backend guarantees"), markup.El("dl", class("facts card"), guaranteeFacts(m.view.Properties)),
		markup.El("p", markup.El("a", markup.Link("href", "health"), markup.Text("Look again"))),
	}})
}

// pingName is one byte, so that it fits even after the longest namespace.
const pingName = "-"

// ping measures how long the backend takes to read one name.
func (h *Handler) ping(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	began := time.Now()
	_, err := h.overview.Client().Inspect(ctx, pingName)
	return time.Since(began), err
}

func fact(head string, parts ...markup.Part) markup.HTML {
	return markup.El("div", text("dt", head), markup.El("dd", parts...))
}

func findingsOf(found []pawl.Finding, err error) markup.HTML {
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return text("p", "This backend cannot examine itself.", class("card"))
	case err != nil:
		return text("p", "It could not be examined: "+visible.Text(errText(err)), class("notice bad"))
	}
	noProblems := markup.HTML{}
	if !slices.ContainsFunc(found, func(f pawl.Finding) bool { return !f.IsFact() }) {
		noProblems = text("p", "No problems found.", class("notice good"))
	}
	if len(found) == 0 {
		return noProblems
	}
	items := []markup.Part{class("findings"), markup.Attr("role", "list")}
	for _, f := range found {
		style := cmp.Or(map[pawl.Severity]string{pawl.SeverityError: "notice bad", pawl.SeverityWarning: "notice"}[f.Severity], "card")
		item := []markup.Part{class(style), markup.El("h3", badge("", string(f.Severity)), markup.Text(" "+visible.Text(f.Subject))), text("p", visible.Text(f.Detail))}
		if f.Advice != "" {
			item = append(item, text("p", visible.Text(f.Advice)))
		}
		items = append(items, markup.El("li", item...))
	}
	return markup.Join(noProblems, markup.El("ul", items...))
}

func (h *Handler) connectionFacts(m renderContext, took time.Duration, err error) markup.HTML {
	answer := preciseDuration(took) + " to read one name"
	if err != nil {
		answer = visible.Text(errText(err))
	}
	changes := "Not pushed: the next scan of all names shows them."
	if m.view.Push {
		changes = "Pushed: the page shows changes of its names at once. The next scan finds new names."
	}
	return markup.Join(
		fact("Answers in", markup.Text(answer)),
		fact("All names", markup.Text(countText(len(m.view.Rows), "name")+" read in "+preciseDuration(m.view.ScanTime)+", every "+briefDuration(m.view.Pace+time.Second-1)+" while a page is open")),
		fact("Changes", markup.Text(changes)),
		fact("Pages open", markup.Text(countText(h.overview.Viewers(), "page")+", for which the backend is asked once")),
	)
}

const maxOverdueNames = 20

// overdueList lists the leases that were not renewed in time.
func overdueList(m renderContext) markup.HTML {
	p := m.view.Page(overview.Query{Limit: maxOverdueNames})
	items := []markup.Part{class("card"), markup.Attr("role", "list")}
	for _, r := range p.Rows {
		for i := range r.Holders {
			if r.Overdue(i) {
				items = append(items, markup.El("li", nameLink(r.Name), markup.Text(": "), owner(r.Holders[i].Owner), markup.Text(", "),
					m.until(r.At.Add(r.Holders[i].ExpiresIn)), markup.Text(" left")))
			}
		}
	}
	if p.Counts.Overdue == 0 {
		return text("p", "Every lease was renewed in time.", class("notice good"))
	}
	return markup.Join(text("p", countText(p.Counts.Overdue, "name")+" with a lease that was not renewed in time:"), markup.El("ul", items...))
}

// failedRenewals counts the failed renewals of this process's own clients, if Metrics
// counts them.
func (h *Handler) failedRenewals() markup.HTML {
	if h.options.Metrics == nil {
		return markup.HTML{}
	}
	return text("p", countText(int(h.options.Metrics.failures(pawl.OpRenew)), "request")+" for renewals by clients of this process have failed since it started.", class("aside"))
}

func guaranteeFacts(p pawl.Properties) markup.HTML {
	choose := func(b bool, yes, no string) markup.HTML {
		if b {
			return markup.Text(yes)
		}
		return markup.Text(no)
	}
	clocks := map[pawl.ClockSource]string{
		pawl.ClockProcess: "this process's: leases are of this process only", pawl.ClockHost: "that of the host", pawl.ClockServer: "that of the server",
	}
	clock := cmp.Or(clocks[p.Clock], string(p.Clock))
	location := markup.HTML{}
	if p.Location != "" {
		location = fact("Where", isolatedText(p.Location))
	}
	shortest := "10ms, as on every backend"
	if p.MinTTL > 0 {
		shortest = p.MinTTL.String()
	}
	return markup.Join(
		fact("Backend", isolatedText(p.Backend)),
		location,
		fact("Whose clock decides what has expired", markup.Text(clock)),
		fact("Fences rise across", markup.Text(p.FenceSurvives.String())),
		fact("Shortest TTL", markup.Text(shortest)),
		fact("Waiters are woken", choose(p.PushesGrants, "by push", "by asking again")),
		fact("Changes of a watched name", choose(p.PushesChanges, "by push", "by asking again")),
		fact("A lease that is deleted by hand", choose(p.ReportsDeletions, "its holder is notified at once", "its holder detects it at its next renewal")),
	)
}

// healthz serves the supervisor of this process. It answers 200 while the process serves,
// even if the backend fails, because a restart would not help.
func (h *Handler) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if h.ctx.Err() != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "closed\n")
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}
