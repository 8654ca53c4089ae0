package dashboard

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/markup"
	"github.com/pawl-go/pawl/internal/overview"
	"github.com/pawl-go/pawl/internal/visible"
)

// A renderContext is a view with the time at which it is shown. In a stream the markup
// has times instead of durations, so that it changes only with an event. The browser
// computes durations from the times in the updates, because its own clock may be wrong.
type renderContext struct {
	view   *overview.View
	now    time.Time
	stream bool
}

// browserTime returns a time for app.js, in milliseconds of this process's clock.
func browserTime(t time.Time) int64 { return t.Round(200 * time.Millisecond).UnixMilli() }

// ago returns the time since t, by the backend's clock. The browser keeps counting.
func (m renderContext) ago(t time.Time) markup.HTML {
	return m.liveDuration("data-since", t.Add(-m.view.Offset), m.view.Since(t, m.now))
}

// until returns the time left until t, by this process's clock.
func (m renderContext) until(t time.Time) markup.HTML {
	return m.liveDuration("data-until", t, max(0, t.Sub(m.now)))
}

func (m renderContext) liveDuration(how string, t time.Time, d time.Duration) markup.HTML {
	text := briefDuration(d)
	if m.stream {
		text = ""
	}
	return markup.El("span", markup.Attr("class", "t"), markup.Int(how, browserTime(t)), markup.Text(text))
}

// left returns the time left of a lease, as a bar and in words.
func (m renderContext) left(r *overview.Row, i int) markup.HTML {
	end, ttl := r.At.Add(r.Holders[i].ExpiresIn), max(r.TTLs[i], 1).Round(100*time.Millisecond)
	class, words := "left", "time left"
	if r.Overdue(i) {
		class, words = "left late", "time left, not renewed in time"
	}
	value := markup.Int("value", r.Left(i, m.now).Milliseconds())
	if m.stream {
		value = markup.Attribute{}
	}
	// If the backend does not answer, the lease may have been renewed since.
	const over = "over unless renewed"
	left := ""
	switch {
	case m.stream:
	case end.After(m.now):
		left = briefDuration(end.Sub(m.now))
	default:
		left = over
	}
	bar := markup.El("progress", markup.Attr("class", class), markup.Attr("aria-label", words),
		markup.Int("max", max(1, ttl.Milliseconds())), value, markup.Int("data-until", browserTime(end)))
	return markup.Join(bar, markup.Text(" "),
		markup.El("span", markup.Attr("class", "t"), markup.Int("data-until", browserTime(end)), markup.Attr("data-over", over), markup.Text(left)))
}

// briefDuration formats a duration for people. app.js does the same.
func briefDuration(d time.Duration) string {
	s := int64(max(0, d) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm %02ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh %02dm", s/3600, s%3600/60)
	}
	return fmt.Sprintf("%dd %dh", s/86400, s%86400/3600)
}

// preciseDuration formats a measured duration with milliseconds, or a tenth of a second.
func preciseDuration(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return briefDuration(d)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return "less than 1ms"
}

// errText returns an error's message without the "pawl: " of the library.
func errText(err error) string { return strings.TrimPrefix(err.Error(), "pawl: ") }

// isolatedText returns a text whose direction of writing does not spread.
func isolatedText(s string) markup.HTML { return markup.El("bdi", markup.Text(visible.Text(s))) }

func owner(o pawl.Owner) markup.HTML {
	return markup.El("span", markup.Attr("class", "owner"), markup.Attr("title", "client "+visible.Text(o.Client)), isolatedText(o.ShortString()))
}

// labels lists the details that owner leaves out.
func labels(o pawl.Owner) markup.HTML {
	var items []markup.HTML
	for _, d := range o.Details() {
		items = append(items, markup.El("li", isolatedText(d[0]), markup.Text("="), isolatedText(d[1])))
	}
	if items == nil {
		return markup.HTML{}
	}
	return markup.El("ul", markup.Attr("class", "labels"), markup.Attr("role", "list"), markup.Attr("aria-label", "labels"), markup.Join(items...))
}

// released returns the remark about a holder that has released its lease.
func released(h *pawl.Holder) markup.HTML {
	if !h.Released {
		return markup.HTML{}
	}
	return badge("", "released, kept for its minimum")
}

func kind(weight, limit int) markup.HTML {
	return badge(string(driver.KindOf(weight, limit)), overview.KindWords(weight, limit))
}

func badge(class, words string) markup.HTML {
	return markup.El("span", markup.Attr("class", "badge "+class), markup.Text(words))
}

func fenceOf(n uint64) markup.HTML {
	return markup.El("code", markup.Attr("class", "fence"), markup.Text(strconv.FormatUint(n, 10)))
}

func nameURL(name string) string { return "name?name=" + url.QueryEscape(name) }

func nameLink(name string) markup.HTML {
	return markup.El("a", markup.Link("href", nameURL(name)), isolatedText(name))
}

// countText returns a number of things: "1 name", "2 names".
func countText(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}

func class(s string) markup.Attribute { return markup.Attr("class", s) }

func text(tag, s string, parts ...markup.Part) markup.HTML {
	return markup.El(tag, append(parts, markup.Text(s))...)
}
