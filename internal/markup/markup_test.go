package markup_test

import (
	"html"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawl-go/pawl/internal/markup"
)

var attacks = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'><svg/onload=alert(1)>`, `</title><script>`,
	"` onmouseover=alert(1) `", `" onfocus="alert(1)" autofocus="`, `<!--`, `-->`, `]]>`, `&lt;script&gt;`, `&#60;b&#62;`,
	"\x00<b>", "\xff\xfe<i>", "a\x00b", "<\u0000script>", "\u2028<b>\u2029", "＜script＞", "{{7*7}}", "${7*7}", "</textarea><b>",
}

func TestTextStaysText(t *testing.T) {
	for _, s := range attacks {
		wantText(t, s)
	}
}

func FuzzTextStaysText(f *testing.F) {
	for _, s := range attacks {
		f.Add(s)
	}
	f.Fuzz(wantText)
}

// wantText uses s as a value and as a text, and wants s there and no markup.
func wantText(t *testing.T, s string) {
	want := strings.Map(func(r rune) rune {
		if r == 0 {
			return utf8.RuneError
		}
		return r
	}, s)
	got := markup.El("p", markup.Attr("title", s), markup.Text(s)).String()
	inner := strings.TrimSuffix(strings.TrimPrefix(got, `<p title="`), `</p>`)
	title, text, found := strings.Cut(inner, `">`)
	if !found || strings.ContainsAny(title+text, "<>\"'`\x00") || !utf8.ValidString(got) {
		t.Fatalf("%q became %q", s, got)
	}
	if title != text || html.UnescapeString(text) != want {
		t.Errorf("%q is read as %q, want %q", s, html.UnescapeString(text), want)
	}
}

func TestLinksLeadToPagesOnly(t *testing.T) {
	for url, allowed := range map[string]bool{
		"name?name=a%3Ab": true, "./": true, "https://example.com/": true, "http://example.com": true, "#top": true, "?q=a:b": true,
		"javascript:alert(1)": false, "JaVaScRiPt:alert(1)": false, "\x20javascript:alert(1)": false, "java\tscript:alert(1)": false,
		"data:text/html,<script>": false, "vbscript:x": false, "\x01javascript:x": false, "file:///etc/passwd": false, `\\host\x`: false,
	} {
		got := markup.El("a", markup.Link("href", url)).String()
		if refused := got == `<a href="#"></a>`; refused == allowed {
			t.Errorf("%q became %s", url, got)
		}
	}
}

func FuzzLinksLeadToPagesOnly(f *testing.F) {
	f.Add("javascript:alert(1)")
	f.Add("https://example.com/?a=<b>")
	f.Fuzz(func(t *testing.T, url string) {
		got := markup.El("a", markup.Link("href", url)).String()
		value := strings.TrimSuffix(strings.TrimPrefix(got, `<a href="`), `"></a>`)
		value = html.UnescapeString(value)
		if strings.ContainsAny(value, "\x00\t\n\r ") || strings.Contains(strings.ToLower(value), "script:") && !strings.ContainsAny(value[:strings.Index(strings.ToLower(value), "script:")], "/?#:") {
			t.Errorf("%q became %s", url, got)
		}
	})
}

func TestElementsAreWritten(t *testing.T) {
	for want, got := range map[string]markup.HTML{
		`<a href="x?y=1&#38;z">&#60;</a>`:      markup.El("a", markup.Link("href", "x?y=1&z"), markup.Text("<")),
		`<input name="q" value="5">`:           markup.El("input", markup.Attr("name", "q"), markup.Int("value", 5), markup.If(false, "checked", "")),
		`<p>ab</p>`:                            markup.El("p", markup.Join(markup.Text("a"), markup.Text("b"))),
		`<script src="app.js" defer></script>`: markup.Script("app.js", false),
		`<script src="theme.js"></script>`:     markup.Script("theme.js", true),
		"<!doctype html>\n<html lang=\"en\"><head></head><body></body></html>\n": markup.Document(markup.HTML{}, markup.El("body")),
	} {
		if got.String() != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

func TestScriptsAndStylesPanic(t *testing.T) {
	for what, f := range map[string]func(){
		"an event":            func() { markup.Attr("onclick", "x") },
		"a style":             func() { markup.Attr("style", "x") },
		"a document":          func() { markup.Attr("srcdoc", "x") },
		"a link as text":      func() { markup.Attr("href", "x") },
		"a name with a blank": func() { markup.El("p onclick=x") },
		"no name":             func() { markup.Attr("", "x") },
		"a script":            func() { markup.El("script") },
		"a script's address":  func() { markup.Script("data:text/javascript,x", false) },
	} {
		t.Run(what, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it did not panic")
				}
			}()
			f()
		})
	}
}
