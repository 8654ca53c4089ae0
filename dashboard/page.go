package dashboard

import (
	"cmp"
	"context"
	"embed"
	"io"
	"net/http"
	"time"

	"github.com/pawl-go/pawl/internal/markup"
	"github.com/pawl-go/pawl/internal/overview"
	"github.com/pawl-go/pawl/internal/visible"
)

//go:embed assets
var assets embed.FS

func asset(name, kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "no-cache")
		http.ServeFileFS(w, r, assets, "assets/"+name)
	}
}

// A page is a document with its layout.
type page struct {
	title     string
	navLink   string // of navLinks, or ""
	status    int    // default: 200
	streamURL string // the URL of its stream, or empty
	body      []markup.Part
}

func (h *Handler) writePage(w http.ResponseWriter, r *http.Request, p page) {
	head := markup.Join(
		markup.El("meta", markup.Attr("charset", "utf-8")),
		markup.El("meta", markup.Attr("name", "viewport"), markup.Attr("content", "width=device-width, initial-scale=1")),
		markup.El("meta", markup.Attr("name", "color-scheme"), markup.Attr("content", "light dark")),
		text("title", visible.Text(p.title)+" · Pawl"),
		markup.El("link", markup.Attr("rel", "stylesheet"), markup.Link("href", "style.css")),
		markup.El("link", markup.Attr("rel", "icon"), markup.Attr("type", "image/svg+xml"), markup.Link("href", "icon.svg")),
		markup.Script("theme.js", true),
		markup.Script("app.js", false),
	)
	main := append([]markup.Part{markup.Attr("id", "main"), markup.If(p.streamURL != "", "data-live", p.streamURL)}, p.body...)
	body := markup.El("body",
		markup.El("a", class("skip"), markup.Link("href", "#main"), markup.Text("Skip to the content")),
		h.header(p.navLink),
		markup.El("main", main...),
		h.footer(r),
	)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if p.status != 0 {
		w.WriteHeader(p.status)
	}
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, markup.Document(head, body).String())
	}
}

// navLinks has the links of the navigation.
var navLinks = []struct{ url, words string }{{"./", "Names"}, {"health", "Health"}}

func (h *Handler) header(at string) markup.HTML {
	links := []markup.Part{markup.Attr("role", "list")}
	for _, p := range navLinks {
		links = append(links, markup.El("li",
			markup.El("a", markup.Link("href", p.url), markup.If(p.url == at, "aria-current", "page"), markup.Text(p.words))))
	}
	theme := text("button", "Dark theme", markup.Attr("type", "button"), markup.Attr("id", "theme"), markup.Attr("hidden", ""))
	tools := []markup.Part{class("tools"), theme}
	if h.auth.required && at != "" {
		tools = append(tools, markup.El("form", markup.Attr("method", "post"), markup.Link("action", "logout"),
			text("button", "Sign out", markup.Attr("type", "submit"))))
	}
	return markup.El("header", class("top"),
		markup.El("a", class("brand"), markup.Link("href", "./"), text("span", "", class("mark"), markup.Attr("aria-hidden", "true")), markup.Text("Pawl")),
		markup.El("nav", markup.Attr("aria-label", "Pages"), markup.El("ul", links...)),
		markup.El("div", tools...),
	)
}

// footer shows where the locks are, if the reader may know.
func (h *Handler) footer(r *http.Request) markup.HTML {
	status := markup.El("p", markup.Attr("role", "status"), markup.Attr("id", "said"), class("unseen"))
	if !h.auth.hasSession(r) {
		return markup.El("footer", status)
	}
	p := h.overview.Client().Properties()
	where := cmp.Or(p.Location, p.Backend)
	return markup.El("footer",
		markup.El("p", markup.Text("Locks on "), isolatedText(where), markup.Text(". Times are by its clock.")),
		status,
	)
}

// refuse answers with a page that has the reason.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, status int, why string) {
	h.writePage(w, r, page{title: http.StatusText(status), status: status, body: []markup.Part{
		text("h1", http.StatusText(status)),
		text("p", why),
		markup.El("p", markup.El("a", markup.Link("href", "./"), markup.Text("All names"))),
	}})
}

// A pageView renders a view. It returns the parts of the page, by element id, and the
// names whose changes it needs at once. A stream sends a part again when it changes.
type pageView func(m renderContext) (parts map[string]markup.HTML, names []string)

// maxViewAge is the greatest age of a page's view. If viewTimeout passes before there is
// such a view, the page shows an older one, with its age.
const maxViewAge = time.Second

func (h *Handler) latestView(r *http.Request) renderContext {
	wait := viewTimeout
	if h.overview.View().ScannedAt.IsZero() {
		wait = firstViewTimeout
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	return renderContext{view: h.overview.Latest(ctx, maxViewAge), now: time.Now()}
}

func region(tag, id string, parts map[string]markup.HTML, more ...markup.Part) markup.HTML {
	return markup.El(tag, append(more, markup.Attr("id", id), parts[id])...)
}

// notices returns the warnings at the top of every page.
func (m renderContext) notices() markup.HTML {
	var all []markup.HTML
	say := func(class_, head, words string) {
		all = append(all, markup.El("div", class("notice "+class_), text("strong", head), markup.Text(" "+words)))
	}
	v := m.view
	switch {
	case v.Unsupported():
		say("bad", "This backend cannot list its names.", "A name's own page shows it: search for the whole name.")
	case v.Err != nil:
		shown := ". The page shows what it read before that"
		if v.ScannedAt.IsZero() {
			shown = ""
		}
		all = append(all, markup.El("div", class("notice bad"),
			text("strong", "The backend does not answer."), markup.Text(" "+visible.Text(errText(v.Err))+". This has been so for "),
			m.agoLocal(v.ErrSince), markup.Text(shown+". Pawl keeps asking.")))
	}
	if n := len(v.Blocks().Deadlocks); n > 0 {
		first := v.Blocks().Deadlocks[0][0].Name
		all = append(all, markup.El("div", class("notice bad"), text("strong", countText(n, "deadlock")+"."),
			markup.Text(" Processes wait for each other, the first at "), nameLink(first), markup.Text(".")))
	}
	if len(v.Damaged) > 0 {
		d := v.Damaged[0]
		all = append(all, markup.El("div", class("notice bad"), text("strong", countText(len(v.Damaged), "name")+" cannot be read."),
			markup.Text(" The first is "), isolatedText(d.Name), markup.Text(": "+visible.Text(errText(d.Err)))))
	}
	if v.More {
		say("", "There are more names.", "The first 100 000 are shown.")
	}
	return markup.Join(all...)
}

// agoLocal returns the time since t, by this process's clock.
func (m renderContext) agoLocal(t time.Time) markup.HTML {
	return m.liveDuration("data-since", t, m.now.Sub(t))
}

// pushMode describes how changes reach the page. It rounds to whole seconds, so that the
// text does not change whenever the backend is a little faster or slower.
func pushMode(v *overview.View) string {
	every := "every " + briefDuration(v.Pace+time.Second-1)
	if v.Push {
		return "Changes are pushed; all names are read " + every
	}
	return "Polled " + every
}
