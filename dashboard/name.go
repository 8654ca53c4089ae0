package dashboard

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/markup"
	"github.com/pawl-go/pawl/internal/overview"
	"github.com/pawl-go/pawl/internal/visible"
)

const maxQueueRows = 200 // how many rows of the queue a page shows

func (h *Handler) namePage(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	if err := driver.ValidateName(name); err != nil {
		h.refuse(w, r, http.StatusBadRequest, visible.Text(errText(err)))
		return
	}
	m := h.latestView(r)
	all, _ := h.nameView(name)(m)
	h.writePage(w, r, page{title: name, streamURL: "events?" + url.Values{"view": {"name"}, "name": {name}}.Encode(), body: []markup.Part{
		region("div", "notices", all),
		markup.El("div", class("head"), markup.El("h1", isolatedText(name)), region("p", "how", all, class("how"))),
		h.brokenMessage(r.URL.Query()),
		region("div", "state", all),
		text("h2", "Holders"), region("div", "holders", all, class("sheet")), h.howToBreak(),
		text("h2", "Queue"), region("div", "queue", all, class("sheet")),
		region("div", "blocks", all),
		text("h2", "What has happened"), region("div", "past", all),
		markup.El("p", markup.El("a", markup.Link("href", "./"), markup.Text("← All names"))),
	}})
}

// howToBreak explains how to break a lease, if this page cannot.
func (h *Handler) howToBreak() markup.HTML {
	if h.options.AllowBreak {
		return markup.HTML{}
	}
	return markup.El("p", class("aside"), markup.Text("No lease can be broken from here. In a terminal, "), text("code", "pawl break NAME"),
		markup.Text(" shows who holds the name, and asks; "), text("code", "pawl serve --allow-break"), markup.Text(" lets this page do it."))
}

func (h *Handler) nameView(name string) pageView {
	var cached unlistedName
	return func(m renderContext) (map[string]markup.HTML, []string) {
		row, err := m.view.Row(name), error(nil)
		if row == nil {
			row, err = cached.read(h, m, name)
		} else {
			cached = unlistedName{} // outdated, because a scan has found the name
		}
		parts := map[string]markup.HTML{
			"notices": m.notices(), "how": markup.Text(pushMode(m.view)), "blocks": blocksOf(m.view, name), "past": h.history(m, name),
		}
		if err != nil { // a name that cannot be read is not shown as free
			unknown := text("p", "Not known.", class("empty"))
			parts["state"], parts["holders"], parts["queue"] = text("p", unreadText(err), class("state")), unknown, unknown
		} else {
			parts["state"], parts["holders"], parts["queue"] = m.stateText(row), h.holdersTable(m, row), m.queueTable(row)
		}
		return parts, []string{name}
	}
}

// unlistedName is a name that the last scan has not found: an unused name with a value, a
// lease that is newer than the scan, or a damaged row. The page reads it once, and again
// after unlistedMaxAge, or after failedReadMaxAge if the read failed.
type unlistedName struct {
	until time.Time // before that, the page does not read the name again
	row   *overview.Row
	err   error // why there is no row
}

const (
	unlistedMaxAge   = 15 * time.Second
	failedReadMaxAge = time.Second
)

func (f *unlistedName) read(h *Handler, m renderContext, name string) (*overview.Row, error) {
	if m.now.Before(f.until) {
		return f.row, f.err
	}
	ctx, cancel := context.WithTimeout(h.ctx, unlistedTimeout)
	defer cancel()
	e, err := h.overview.Client().Inspect(ctx, name)
	now := time.Now() // the request may have taken longer than failedReadMaxAge
	if err != nil {
		*f = unlistedName{until: now.Add(failedReadMaxAge), err: err}
		return nil, err
	}
	row := &overview.Row{Entry: e, At: now, TTLs: make([]time.Duration, len(e.Holders))}
	for i := range e.Holders {
		row.TTLs[i] = e.Holders[i].ExpiresIn
	}
	*f = unlistedName{until: now.Add(unlistedMaxAge), row: row}
	return row, nil
}

func unreadText(err error) string { return "It cannot be read now: " + visible.Text(errText(err)) }

// stateText describes the state of a name in a sentence or two.
func (m renderContext) stateText(r *overview.Row) markup.HTML {
	var words []markup.Part
	add := func(more ...markup.Part) { words = append(words, more...) }
	switch n := len(r.Holders); {
	case n > 0 && m.allExpired(r):
		add(markup.Text("It was held by " + countText(n, "lease") + " when it was last read. No lease has time left unless it was renewed since. "))
	case n > 0:
		oldest := slices.MinFunc(r.Holders, func(a, b pawl.Holder) int { return a.Since.Compare(b.Since) })
		add(markup.Text("Held by "+countText(n, "lease")+", the longest for "), m.ago(oldest.Since), markup.Text(". "))
	case r.ClosedFor > 0:
		add(markup.Text("Nobody holds it. "))
	case len(r.Waiters) > 0:
		add(markup.Text("Nobody holds it yet. "))
	default:
		add(markup.Text("It is free. "))
	}
	if r.ClosedFor > 0 {
		add(text("strong", "Closed: "), markup.Text("nothing is granted for another "), m.until(r.At.Add(r.ClosedFor)),
			markup.Text(", because its last lease was broken or expired. "))
	}
	if r.Fence > 0 {
		add(markup.Text("Its last fence is "), fenceOf(r.Fence), markup.Text(". "))
	}
	if r.Value != nil {
		add(markup.Text("It keeps the value "), markup.El("code", isolatedText(valueText(r.Value))), markup.Text(", written with fence "), fenceOf(r.ValueFence), markup.Text("."))
	}
	return markup.El("p", append(words, class("state"))...)
}

// allExpired reports whether no lease of a row has time left, by the last read.
func (m renderContext) allExpired(r *overview.Row) bool {
	for i := range r.Holders {
		if r.Left(i, m.now) > 0 {
			return false
		}
	}
	return true
}

// valueText returns the beginning of a value, or its length if it is not text.
func valueText(value []byte) string {
	if !utf8.Valid(value) {
		return fmt.Sprintf("%d bytes that are no text", len(value))
	}
	if s := []rune(string(value)); len(s) > 200 {
		return string(s[:200]) + "…"
	}
	return string(value)
}

// tableOf returns a table with these heads, or a sentence if there are no rows.
func tableOf(caption, empty string, heads []string, rows []markup.HTML) markup.HTML {
	if len(rows) == 0 {
		return text("p", empty, class("empty"))
	}
	cells := []markup.Part{markup.Attr("role", "row")}
	for _, head := range heads {
		cells = append(cells, text("th", head, markup.Attr("scope", "col"), markup.Attr("role", "columnheader")))
	}
	return markup.El("table", markup.Attr("role", "table"), text("caption", caption, class("unseen")),
		markup.El("thead", markup.Attr("role", "rowgroup"), markup.El("tr", cells...)),
		markup.El("tbody", markup.Attr("role", "rowgroup"), markup.Join(rows...)))
}

func tableRow(state string, first markup.HTML, cells ...markup.Part) markup.HTML {
	parts := []markup.Part{
		markup.Attr("role", "row"), markup.If(state != "", "class", state),
		markup.El("th", markup.Attr("scope", "row"), markup.Attr("role", "rowheader"), first),
	}
	return markup.El("tr", append(parts, cells...)...)
}

func (h *Handler) holdersTable(m renderContext, r *overview.Row) markup.HTML {
	heads := []string{"Holder", "Kind", "Fence", "Held for", "Time left", "TTL"}
	if h.options.AllowBreak {
		heads = append(heads, "Break")
	}
	var rows []markup.HTML
	for i := range r.Holders {
		x := &r.Holders[i]
		state, late := "", markup.HTML{}
		if r.Overdue(i) {
			state, late = "late", badge("bad", "not renewed in time")
		}
		cells := []markup.Part{
			cell("Kind", kind(x.Permits, x.Limit)), cell("Fence", fenceOf(x.Fence)), cell("Held for", m.ago(x.Since)),
			cell("Time left", m.left(r, i), late), cell("TTL", markup.Text(x.TTL.String())),
		}
		if h.options.AllowBreak {
			to := "break?" + url.Values{"name": {r.Name}, "fence": {strconv.FormatUint(x.Fence, 10)}}.Encode()
			cells = append(cells, cell("Break", markup.El("a", markup.Link("href", to), class("button"),
				markup.Text("Break…"), text("span", " the lease with fence "+strconv.FormatUint(x.Fence, 10), class("unseen")))))
		}
		rows = append(rows, tableRow(state, markup.Join(owner(x.Owner), released(x), labels(x.Owner)), cells...))
	}
	return tableOf("Holders", "Nobody holds it.", heads, rows)
}

func (m renderContext) queueTable(r *overview.Row) markup.HTML {
	var rows []markup.HTML
	for i := range r.Waiters[:min(len(r.Waiters), maxQueueRows)] {
		w := &r.Waiters[i]
		rows = append(rows, tableRow("", markup.Text(strconv.Itoa(i+1)), cell("Waiter", owner(w.Owner), labels(w.Owner)),
			cell("Kind", kind(w.Permits, w.Limit)), cell("Waits for", m.ago(w.Since))))
	}
	all := tableOf("Queue, in the order in which it will be served", "Nobody waits.", []string{"Place", "Waiter", "Kind", "Waits for"}, rows)
	if n := len(r.Waiters) - maxQueueRows; n > 0 {
		all = markup.Join(all, text("p", fmt.Sprintf("and %d more", n), class("empty")))
	}
	return all
}

// blocksOf lists processes that wait for this name and hold another, or the reverse.
func blocksOf(v *overview.View, name string) markup.HTML {
	b := v.Blocks()
	var all []markup.HTML
	shown := map[[2]string]bool{} // the sentences so far, by waiter and name
	for _, circle := range b.DeadlocksOf(name) {
		var steps []markup.Part
		for _, x := range circle {
			shown[[2]string{x.Waiter, x.Name}] = true
			steps = append(steps, markup.El("li", blockText(x)))
		}
		all = append(all, markup.El("div", class("notice bad"), text("strong", "A deadlock."),
			markup.Text(" Each waits for the next, and the last for the first. None of them goes on until one gives up, or its lease is broken."),
			markup.El("ol", steps...)))
	}
	var rows []markup.Part
	blocks := slices.DeleteFunc(b.Of(name), func(x overview.Block) bool { return shown[[2]string{x.Waiter, x.Name}] })
	for _, x := range blocks[:min(len(blocks), maxQueueRows)] {
		rows = append(rows, markup.El("li", blockText(x)))
	}
	if len(rows) > 0 {
		all = append(all, markup.El("ul", append(rows, class("blocks"))...))
	}
	if len(all) == 0 {
		return markup.HTML{}
	}
	return markup.Join(text("h2", "Who blocks whom"), markup.Join(all...),
		text("p", "The host and the pid identify a process. A process may wait in one goroutine and go on in another.", class("aside")))
}

const maxHeldNames = 5 // how many held names a sentence lists

func blockText(x overview.Block) markup.HTML {
	all := []markup.HTML{isolatedText(x.Waiter), markup.Text(" holds ")}
	for i, held := range x.Holds[:min(len(x.Holds), maxHeldNames)] {
		if i > 0 {
			all = append(all, markup.Text(", "))
		}
		all = append(all, nameLink(held))
	}
	if n := len(x.Holds) - maxHeldNames; n > 0 {
		all = append(all, markup.Text(fmt.Sprintf(" and %d more", n)))
	}
	return markup.Join(append(all, markup.Text(" and waits for "), nameLink(x.Name), markup.Text(", which "), isolatedText(x.Holder), markup.Text(" holds."))...)
}

// brokenMessage returns the message after a break.
func (h *Handler) brokenMessage(q url.Values) markup.HTML {
	w := breakTarget{name: q.Get("name")}
	w.fence, _ = strconv.ParseUint(q.Get("broke"), 10, 64)
	if w.fence == 0 || subtle.ConstantTimeCompare([]byte(q.Get("proof")), []byte(h.breakProof(w))) != 1 {
		return markup.HTML{}
	}
	fence := strconv.FormatUint(w.fence, 10)
	next := " Pawl notifies its holder, and the next one gets the name."
	if h.options.BreakDelay >= 0 {
		next = " Pawl notifies its holder. When the time below is over, the next one gets the name."
	}
	return markup.El("div", class("notice good"), markup.Attr("role", "status"), text("strong", "The lease with fence "+fence+" is broken."),
		markup.Text(next))
}
