package dashboard

import (
	"context"
	"net/http"
	"time"

	"github.com/pawl-go/pawl/internal/markup"
	"github.com/pawl-go/pawl/internal/overview"
	"github.com/pawl-go/pawl/internal/visible"
)

// A pageView renders a view. It returns the parts of the page, by element id, and the
// names whose changes it needs at once. A stream sends a part again when it changes.
type pageView func(m renderContext) (parts map[string]markup.HTML, names []string)

// maxViewAge is the greatest age of a page's view. If a request gets only an older view
// in time, the page shows that, with its age.
const maxViewAge = time.Second

func (h *Handler) latest(r *http.Request) renderContext {
	wait := viewTimeout
	if h.names.View().ScannedAt.IsZero() {
		wait = firstViewTimeout
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	return renderContext{v: h.names.Latest(ctx, maxViewAge), now: time.Now()}
}

// region is an element with a part in it.
func region(tag, id string, parts map[string]markup.HTML, more ...markup.Part) markup.HTML {
	return markup.El(tag, append(more, markup.Attr("id", id), parts[id])...)
}

// notices are the warnings at the top of every page.
func (m renderContext) notices() markup.HTML {
	var all []markup.HTML
	say := func(class_, head, words string) {
		all = append(all, markup.El("div", class("notice "+class_), text("strong", head), markup.Text(" "+words)))
	}
	v := m.v
	switch {
	case v.Unsupported():
		say("bad", "This backend cannot list its names.", "A name's own page shows it: search for the whole name.")
	case v.Err != nil:
		shown := ". What is shown was read before that"
		if v.ScannedAt.IsZero() {
			shown = ""
		}
		all = append(all, markup.El("div", class("notice bad"),
			text("strong", "The backend does not answer."), markup.Text(" "+visible.Text(bare(v.Err))+". This has been so for "),
			m.untilNow(v.ErrSince), markup.Text(shown+". Pawl keeps asking.")))
	}
	if n := len(v.Blocks().Deadlocks); n > 0 {
		first := v.Blocks().Deadlocks[0][0].Name
		all = append(all, markup.El("div", class("notice bad"), text("strong", count(n, "deadlock")+"."),
			markup.Text(" Processes wait for each other, the first at "), nameLink(first), markup.Text(".")))
	}
	if len(v.Damaged) > 0 {
		d := v.Damaged[0]
		all = append(all, markup.El("div", class("notice bad"), text("strong", count(len(v.Damaged), "name")+" cannot be read."),
			markup.Text(" The first is "), word(d.Name), markup.Text(": "+visible.Text(bare(d.Err)))))
	}
	if v.More {
		say("", "There are more names.", "The first 100 000 are shown.")
	}
	return markup.Join(all...)
}

// untilNow returns the time since t, by this process's clock.
func (m renderContext) untilNow(t time.Time) markup.HTML {
	return m.ticking("data-since", t, m.now.Sub(t))
}

// pushMode describes how changes reach the page. It rounds to whole seconds, so that the
// text does not change whenever the backend is a little faster or slower.
func pushMode(v *overview.View) string {
	every := "every " + brief(v.Pace+time.Second-1)
	if v.Push {
		return "Changes are pushed; all names are read " + every
	}
	return "Polled " + every
}
