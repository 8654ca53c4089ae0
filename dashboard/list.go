package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/markup"
	"github.com/pawl-go/pawl/internal/overview"
)

const rowsPerPage = 50

func listQuery(q url.Values) overview.Query {
	by := overview.Sort(q.Get("sort"))
	if !slices.Contains(overview.Sorts, by) {
		by = overview.ByAttention
	}
	offset, _ := strconv.Atoi(q.Get("offset")) // 0 if it is missing or wrong
	return overview.Query{Prefix: q.Get("prefix"), Sort: by, Reversed: q.Get("reversed") != "", Offset: offset, Limit: rowsPerPage}
}

// listValues returns the parameters of a list in a URL.
func listValues(q overview.Query) url.Values {
	v := url.Values{}
	if q.Prefix != "" {
		v.Set("prefix", q.Prefix)
	}
	if q.Sort != overview.ByAttention {
		v.Set("sort", string(q.Sort))
	}
	if q.Reversed {
		v.Set("reversed", "1")
	}
	if q.Offset > 0 {
		v.Set("offset", strconv.Itoa(q.Offset))
	}
	return v
}

func listURL(q overview.Query) string { return strings.TrimSuffix("./?"+listValues(q).Encode(), "?") }

func (h *Handler) listPage(w http.ResponseWriter, r *http.Request) {
	q := listQuery(r.URL.Query())
	all, _ := listView(q)(h.latestView(r))
	streamValues := listValues(q)
	streamValues.Set("view", "list")
	h.writePage(w, r, page{title: "Names", navLink: "./", streamURL: "events?" + streamValues.Encode(), body: []markup.Part{
		region("div", "notices", all),
		markup.El("div", class("head"), text("h1", "Names"), region("p", "how", all, class("how"))),
		region("div", "counts", all, class("counts")),
		searchForm(q),
		markup.El("div", class("sheet"), markup.El("table", markup.Attr("role", "table"), class("names"),
			text("caption", "Names that are held, waited for or closed", class("unseen")),
			markup.El("thead", markup.Attr("role", "rowgroup"), listHead(q)),
			region("tbody", "rows", all, markup.Attr("role", "rowgroup")))),
		region("div", "pager", all, class("pager")),
		markup.El("noscript", text("p", "Without scripts this page shows how it was when it was loaded.", class("aside")),
			markup.El("p", markup.El("a", markup.Link("href", listURL(q)), markup.Text("Load it again")))),
	}})
}

func searchForm(q overview.Query) markup.HTML {
	parts := []markup.Part{
		markup.Attr("role", "search"), class("search"), markup.Link("action", "./"), markup.Attr("method", "get"),
		text("label", "Names that begin with", markup.Attr("for", "prefix")),
		markup.El("input", markup.Attr("type", "search"), markup.Attr("id", "prefix"), markup.Attr("name", "prefix"), markup.Attr("value", q.Prefix),
			markup.Attr("maxlength", "255"), markup.Attr("autocomplete", "off"), markup.Attr("spellcheck", "false"), markup.Attr("dir", "auto")),
		text("button", "Search", markup.Attr("type", "submit")),
	}
	if q.Sort != overview.ByAttention {
		parts = append(parts, markup.El("input", markup.Attr("type", "hidden"), markup.Attr("name", "sort"), markup.Attr("value", string(q.Sort))))
	}
	if q.Prefix != "" {
		parts = append(parts, markup.El("a", markup.Link("href", listURL(overview.Query{Sort: q.Sort})), markup.Text("Show all")))
		parts = append(parts, markup.El("a", markup.Link("href", nameURL(q.Prefix)), markup.Text("Open the name "), isolatedText(q.Prefix)))
	}
	return markup.El("form", parts...)
}

var listColumns = []struct {
	words string
	sort  overview.Sort // empty: not sortable
}{
	{"Name", overview.ByName}, {"Holder", ""}, {"Fence", ""}, {"Held for", overview.ByHeld}, {"Time left", overview.ByLeft}, {"Waiting", overview.ByWaiters},
}

func listHead(q overview.Query) markup.HTML {
	cells := []markup.Part{markup.Attr("role", "row")}
	for _, c := range listColumns {
		cell := []markup.Part{markup.Attr("scope", "col"), markup.Attr("role", "columnheader")}
		if c.sort == "" {
			cells = append(cells, text("th", c.words, cell...))
			continue
		}
		to, arrow := overview.Query{Prefix: q.Prefix, Sort: c.sort}, ""
		if q.Sort == c.sort {
			to.Reversed = !q.Reversed
			order := "descending"
			arrow = " ↓"
			if (c.sort == overview.ByName || c.sort == overview.ByLeft) != q.Reversed {
				order, arrow = "ascending", " ↑"
			}
			cell = append(cell, markup.Attr("aria-sort", order))
		}
		link := markup.El("a", markup.Link("href", listURL(to)), markup.Text(c.words), text("span", arrow, markup.Attr("aria-hidden", "true")))
		cells = append(cells, markup.El("th", append(cell, link)...))
	}
	return markup.El("tr", cells...)
}

func listView(q overview.Query) pageView {
	return func(m renderContext) (map[string]markup.HTML, []string) {
		p := m.view.Page(q)
		rows := make([]markup.HTML, 0, len(p.Rows))
		for _, r := range p.Rows {
			rows = append(rows, m.listRow(r))
		}
		if len(rows) == 0 {
			words := "No name is held or waited for."
			switch {
			case m.view.ScannedAt.IsZero():
				words = "Nothing was seen yet."
			case q.Prefix != "":
				words = "No name in use begins with this."
			}
			rows = append(rows, markup.El("tr", markup.Attr("role", "row"), markup.Attr("data-key", ""),
				text("td", words, markup.Attr("role", "cell"), markup.Attr("colspan", strconv.Itoa(len(listColumns))), class("empty"))))
		}
		return map[string]markup.HTML{
			"notices": m.notices(), "how": markup.Text(pushMode(m.view)), "counts": countsOf(p, q),
			"rows": markup.Join(rows...), "pager": pager(p),
		}, p.Names()
	}
}

func countsOf(p overview.Page, q overview.Query) markup.HTML {
	c := p.Counts
	chip := func(n int, one, many, class_ string) markup.HTML {
		words := many
		if n == 1 {
			words = one
		}
		if n == 0 {
			class_ = ""
		}
		return markup.El("span", class("count "+class_), text("b", strconv.Itoa(n)), markup.Text(" "+words))
	}
	deadlocks, order := len(p.View.Blocks().Deadlocks), markup.HTML{}
	if q.Sort != overview.ByAttention || q.Reversed {
		order = markup.El("a", markup.Link("href", listURL(overview.Query{Prefix: q.Prefix, Sort: overview.ByAttention})), markup.Text("What needs attention first"))
	}
	return markup.Join(
		chip(c.Names, "name", "names", ""), chip(c.Held, "lease", "leases", ""), chip(c.Waiters, "waiter", "waiters", "some"),
		chip(c.Overdue, "overdue", "overdue", "bad"), chip(c.Closed, "closed", "closed", "some"), order,
		text("span", "", markup.Attr("hidden", ""), markup.Attr("data-said", fmt.Sprintf("%d overdue, %s", c.Overdue, countText(deadlocks, "deadlock")))),
	)
}

// cell returns a cell that has the head of its column, which a narrow table shows in it.
func cell(head string, parts ...markup.Part) markup.HTML {
	return markup.El("td", append([]markup.Part{markup.Attr("role", "cell"), markup.Attr("data-head", head)}, parts...)...)
}

func (m renderContext) listRow(r *overview.Row) markup.HTML {
	state := ""
	if r.AnyOverdue() {
		state = "late"
	}
	name := []markup.Part{markup.Attr("scope", "row"), markup.Attr("role", "rowheader"), nameLink(r.Name)}
	var holder, number, held, left []markup.Part
	if r.ClosedFor > 0 {
		name = append(name, markup.El("span", class("badge closed"), markup.Text("closed for "), m.until(r.At.Add(r.ClosedFor))))
	}
	if len(r.Holders) > 0 {
		h := &r.Holders[0]
		name = append(name, kind(totalPermits(r), h.Limit), labels(h.Owner))
		holder = append(holder, owner(h.Owner))
		if n := len(r.Holders) - 1; n > 0 {
			holder = append(holder, markup.Text(" "), text("span", fmt.Sprintf("and %d more", n), class("more")))
		}
		holder = append(holder, released(h))
		number = append(number, fenceOf(h.Fence))
		held = append(held, m.ago(h.Since))
		shortest := 0
		for i := range r.Holders {
			if r.Overdue(i) || !r.Overdue(shortest) && r.Holders[i].ExpiresIn < r.Holders[shortest].ExpiresIn {
				shortest = i
			}
		}
		left = append(left, m.left(r, shortest))
		if state == "late" {
			left = append(left, badge("bad", "overdue"))
		}
	} else {
		holder = append(holder, text("span", "nobody", class("more")))
	}
	return markup.El("tr", markup.Attr("role", "row"), markup.Attr("data-key", url.QueryEscape(r.Name)), markup.If(state != "", "class", state),
		markup.El("th", name...), cell("Holder", holder...), cell("Fence", number...), cell("Held for", held...),
		cell("Time left", left...), cell("Waiting", m.firstWaiters(r)))
}

// totalPermits returns the permits of all holders together, or driver.Exclusive.
func totalPermits(r *overview.Row) int {
	all := 0
	for i := range r.Holders {
		if all += r.Holders[i].Permits; r.Holders[i].Permits == driver.Exclusive {
			return driver.Exclusive
		}
	}
	return all
}

const waitersInList = 3

// firstWaiters lists the first waiters in the queue, with their places.
func (m renderContext) firstWaiters(r *overview.Row) markup.HTML {
	if len(r.Waiters) == 0 {
		return text("span", "–", class("more"), markup.Attr("aria-label", "nobody"))
	}
	queue := []markup.Part{class("queue")}
	for i := range r.Waiters[:min(len(r.Waiters), waitersInList)] {
		w := &r.Waiters[i]
		queue = append(queue, markup.El("li", owner(w.Owner), markup.Text(" "), m.ago(w.Since)))
	}
	more := markup.HTML{}
	if n := len(r.Waiters) - waitersInList; n > 0 {
		more = text("span", fmt.Sprintf("and %d more", n), class("more"))
	}
	return markup.Join(markup.El("ol", queue...), more)
}

func pager(p overview.Page) markup.HTML {
	first, last := p.Query.Offset, p.Query.Offset+len(p.Rows)
	if p.Total <= p.Query.Limit {
		return markup.HTML{}
	}
	link := func(words, rel string, offset int, isLink bool) markup.HTML {
		if !isLink {
			return text("span", words, class("off"))
		}
		q := p.Query
		q.Offset = offset
		return markup.El("a", markup.Link("href", listURL(q)), markup.Attr("rel", rel), markup.Text(words))
	}
	return markup.El("nav", markup.Attr("aria-label", "More names"),
		link("← Previous", "prev", first-p.Query.Limit, first > 0),
		text("span", fmt.Sprintf("%d–%d of %d", first+1, last, p.Total)),
		link("Next →", "next", first+p.Query.Limit, last < p.Total))
}
