// Package markup writes HTML in which text stays text, whatever it contains.
//
// Only this package makes an [HTML]. [Text] and [Attr] escape other text, and [Link]
// refuses a URL that leads to a script. Names of elements and of attributes are constants
// of the program, and a name that could run something panics.
//
// Package html/template can do this, too. But it calls methods by name, so the linker
// keeps every method of every type, and the command would be 1.5 times as large.
package markup

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// HTML is whole and balanced markup. The zero HTML is empty.
type HTML struct{ s string }

// String returns the markup.
func (h HTML) String() string { return h.s }

// A Part is an attribute or a content of an element. They may be given in any order.
type Part interface{ part() }

// An Attribute belongs to the element that it is given to.
type Attribute struct{ key, value string }

func (HTML) part()      {}
func (Attribute) part() {}

// voidElements has the elements without contents or end tag.
var voidElements = map[string]bool{"br": true, "hr": true, "input": true, "link": true, "meta": true}

// El returns an element.
func El(tag string, parts ...Part) HTML {
	mustBeName(tag)
	var b strings.Builder
	b.WriteString("<" + tag)
	for _, p := range parts {
		if a, ok := p.(Attribute); ok && a.key != "" {
			b.WriteString(" " + a.key + `="` + escape(a.value) + `"`)
		}
	}
	b.WriteByte('>')
	if voidElements[tag] {
		return HTML{b.String()}
	}
	for _, p := range parts {
		if h, ok := p.(HTML); ok {
			b.WriteString(h.s)
		}
	}
	b.WriteString("</" + tag + ">")
	return HTML{b.String()}
}

// Text escapes a text.
func Text(s string) HTML { return HTML{escape(s)} }

// Join concatenates markup.
func Join(all ...HTML) HTML {
	var b strings.Builder
	for _, h := range all {
		b.WriteString(h.s)
	}
	return HTML{b.String()}
}

// Document returns a whole document in English.
func Document(head, body HTML) HTML {
	return HTML{"<!doctype html>\n" + El("html", Attr("lang", "en"), El("head", head), body).s + "\n"}
}

// Attr returns an attribute with a text as its value. It panics for an attribute with a
// program or a style, and for one with a URL, which is for [Link].
func Attr(key, value string) Attribute {
	mustBeName(key)
	switch {
	case strings.HasPrefix(key, "on"), key == "style", key == "srcdoc":
		panic("markup: the attribute " + key + " could run something")
	case key == "href", key == "src", key == "action", key == "formaction":
		panic("markup: the attribute " + key + " is for Link")
	}
	return Attribute{key, value}
}

// If returns the attribute if present is true, and otherwise none.
func If(present bool, key, value string) Attribute {
	if !present {
		return Attribute{}
	}
	return Attr(key, value)
}

// Int returns an attribute with a number as its value.
func Int(key string, n int64) Attribute { return Attr(key, strconv.FormatInt(n, 10)) }

// Link returns an attribute with a URL as its value: href, src or action. A URL that is
// neither relative nor http or https becomes "#".
func Link(key, url string) Attribute {
	switch key {
	case "href", "src", "action":
	default:
		panic("markup: the attribute " + key + " is not for Link")
	}
	if !isHarmless(url) {
		url = "#"
	}
	return Attribute{key, url}
}

// isHarmless reports whether a URL is relative, http or https. Browsers ignore tabs and
// line ends, and blanks and controls before the scheme, and take a backslash for a slash.
// So a URL with any of these is not harmless.
func isHarmless(url string) bool {
	for i := range len(url) {
		if url[i] <= ' ' || url[i] == 0x7f || url[i] == '\\' {
			return false
		}
	}
	scheme, _, found := strings.Cut(url, ":")
	if !found || strings.ContainsAny(scheme, "/?#") {
		return true
	}
	return strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "http")
}

// escape returns any string as text. Invalid UTF-8, and the character 0, which HTML does
// not allow, become U+FFFD.
func escape(s string) string {
	plain := func(r rune) bool { return r != utf8.RuneError && !strings.ContainsRune("\x00&<>\"'`", r) }
	if !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case plain(r):
			b.WriteRune(r)
		case r == 0:
			b.WriteRune(utf8.RuneError)
		case r == utf8.RuneError:
			b.WriteRune(r)
		default:
			b.WriteString("&#" + strconv.Itoa(int(r)) + ";")
		}
	}
	return b.String()
}

// mustBeName panics if s has other characters than letters, digits and dashes, or is an
// element that could run something; Script makes script elements.
func mustBeName(s string) {
	if s == "" || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "" {
		panic("markup: " + strconv.Quote(s) + " is no name")
	}
	switch s {
	case "script", "iframe", "object", "embed", "base":
		panic("markup: the element " + s + " could run something")
	}
}

// Script returns an external script. It runs when the document is complete, or, if early
// is set, before the document is drawn.
func Script(url string, early bool) HTML {
	if !isHarmless(url) {
		panic("markup: a script from " + strconv.Quote(url))
	}
	deferred := " defer"
	if early {
		deferred = ""
	}
	return HTML{`<script src="` + escape(url) + `"` + deferred + `></script>`}
}
