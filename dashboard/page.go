package dashboard

import (
	"cmp"
	"embed"
	"io"
	"net/http"

	"github.com/pawl-go/pawl/internal/markup"
	"github.com/pawl-go/pawl/internal/visible"
)

//go:embed assets
var assets embed.FS

// asset serves an embedded file.
func asset(name, kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "no-cache")
		http.ServeFileFS(w, r, assets, "assets/"+name)
	}
}

// A page is a document with its layout.
type page struct {
	title  string
	at     string // its link in the navigation
	status int    // default: 200
	live   string // the URL of its stream, or empty
	body   []markup.Part
}

func (h *Handler) write(w http.ResponseWriter, r *http.Request, p page) {
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
	main := append([]markup.Part{markup.Attr("id", "main"), markup.If(p.live != "", "data-live", p.live)}, p.body...)
	body := markup.El("body",
		markup.El("a", class("skip"), markup.Link("href", "#main"), markup.Text("Skip to the content")),
		h.header(p.at),
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

// The links of the navigation.
var places = []struct{ url, words string }{{"./", "Names"}, {"health", "Health"}}

func (h *Handler) header(at string) markup.HTML {
	links := []markup.Part{markup.Attr("role", "list")}
	for _, p := range places {
		links = append(links, markup.El("li",
			markup.El("a", markup.Link("href", p.url), markup.If(p.url == at, "aria-current", "page"), markup.Text(p.words))))
	}
	tools := []markup.Part{class("tools")}
	tools = append(tools, markup.El("button", markup.Attr("type", "button"), markup.Attr("id", "theme"), markup.Attr("hidden", ""),
		markup.Text("Dark theme")))
	if h.auth.asked && at != "" {
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
	said := markup.El("p", markup.Attr("role", "status"), markup.Attr("id", "said"), class("unseen"))
	if !h.auth.hasSession(r) {
		return markup.El("footer", said)
	}
	p := h.names.Client().Properties()
	where := cmp.Or(p.Where, p.Backend)
	return markup.El("footer",
		markup.El("p", markup.Text("Locks on "), word(where), markup.Text(". Times are by its clock.")),
		said,
	)
}

// refuse answers with a page that has the reason.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, status int, why string) {
	h.write(w, r, page{title: http.StatusText(status), status: status, body: []markup.Part{
		text("h1", http.StatusText(status)),
		text("p", why),
		markup.El("p", markup.El("a", markup.Link("href", "./"), markup.Text("All names"))),
	}})
}
