package browser

import (
	"fmt"
	"net/url"
	"slices"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

// addAttacks takes and queues claims with attacks as their names, hosts, labels and
// values. It returns the names.
func addAttacks(t *testing.T, b *backend) (names []string) {
	t.Helper()
	for i, a := range attacks {
		if driver.ValidateName(a) != nil {
			t.Fatalf("%q is no name", a)
		}
		c := mutex(a, a, i+1)
		c.Value = []byte(a)
		c.Owner.Labels = map[string]string{a: a}
		b.take(c)
		for j := range 3 {
			host := attacks[(i+j+1)%len(attacks)]
			b.queue(labeled(mutex(a, host, i+1000), host, a))
		}
		names = append(names, a)
	}
	return names
}

// alarmScript defines pwned, which an attack calls if it runs. pwned records each call.
const alarmScript = `globalThis.hits = []; globalThis.pwned = (...a) => hits.push(String(new Error().stack));`

// wantUnharmed checks that no attack has run, and that the page contains nothing that
// could run.
func (b *tab) wantUnharmed(where string) {
	b.t.Helper()
	if hits := js[[]string](b, `hits`); len(hits) > 0 {
		b.t.Errorf("%s: an attack ran: %q", where, hits)
	}
	dangerous := js[[]string](b, `[...document.querySelectorAll("*")].filter(e =>
		["IFRAME", "OBJECT", "EMBED", "BASE", "STYLE", "MATH", "IMG"].includes(e.tagName) ||
		e.tagName == "SCRIPT" && !["theme.js", "app.js"].includes(e.getAttribute("src")) ||
		e.tagName == "LINK" && !["style.css", "icon.svg"].includes(e.getAttribute("href")) ||
		e.tagName == "META" && e.httpEquiv ||
		[...e.attributes].some(a => a.name.startsWith("on") || a.name == "style" || a.name == "srcdoc") ||
		["href", "src", "action", "formAction"].some(k => typeof e[k] == "string" && e[k] && new URL(e[k], location).origin != location.origin)
	).map(e => e.outerHTML.slice(0, 200))`)
	for _, d := range dangerous {
		b.t.Errorf("%s: the page has %s", where, d)
	}
	if wide := js[int](b, `document.scrollingElement.scrollWidth - innerWidth`); wide > 0 {
		b.t.Errorf("%s: it is %d pixels wider than the window", where, wide)
	}
}

// Text of other processes stays text, in the first page and in later messages.
func TestAttacksDoNothingInTheList(t *testing.T) {
	t.Parallel()
	for _, l := range []viewSettings{{}, {phone: true}} {
		w := newWorld(t, newBackend(t, nil), nil)
		b := newTab(t, l)
		b.addInitScript(alarmScript)
		b.visit(w.url+"?sort=name", 200)
		b.until("the page is live", isLive)
		names := addAttacks(t, w.backend)
		slices.Sort(names)
		b.until("all are shown", fmt.Sprintf(`document.querySelectorAll("#rows > tr").length == %d`, len(names)))
		if got := js[[]string](b, `[...document.querySelectorAll("#rows > tr")].map(r => decodeURIComponent(r.dataset.key.replaceAll("+", " ")))`); !slices.Equal(got, names) {
			t.Errorf("the names are %q, want %q", got, names)
		}
		b.wantUnharmed("sent")
		b.visit(w.url+"?sort=name", 200) // now the attacks are in the first page
		b.until("the page is live", isLive)
		b.wantUnharmed("first page")
		for _, plain := range []string{`<script>pwned()</script>`, `&lt;script&gt;pwned()&lt;/script&gt;`, `javascript:pwned()`} {
			if got := js[string](b, row(plain)+`.querySelector("th a").innerText`); got != plain {
				t.Errorf("%q is shown as %q", plain, got)
			}
		}
		if got, want := js[string](b, row("nightly\u202etroper\u202c")+`.querySelector("th a").innerText`), `nightly\u202etroper\u202c`; got != want {
			t.Errorf("the direction controls are shown as %q, want %q", got, want)
		}
		b.visit(w.url+"?sort=name&prefix="+url.QueryEscape(attacks[1]), 200) // in the search field
		if got := js[string](b, `document.getElementById("prefix").value`); got != attacks[1] {
			t.Errorf("the field has %q", got)
		}
		b.wantUnharmed("search")
	}
}

// The page of a name shows its claims: one with its own attack, and three with others. So
// a third of the pages shows all attacks.
func TestAttacksDoNothingInTheirOwnPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newBackend(t, nil), nil)
	names := addAttacks(t, w.backend)
	b := newTab(t, viewSettings{})
	b.addInitScript(alarmScript)
	for i := 0; i < len(names); i += 3 {
		name := names[i]
		b.visit(w.url+"name?name="+url.QueryEscape(name), 200)
		b.until("the page is live", isLive)
		b.wantUnharmed(fmt.Sprintf("%q", name))
	}
}
