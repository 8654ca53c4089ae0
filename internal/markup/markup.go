// Package markup writes HTML that cannot be broken out of: whatever is text becomes text.
//
// An [HTML] is made by this package only. What comes from elsewhere goes in by [Text] and
// [Attr], which escape it, and by [Link], which refuses a URL that leads to a script.
// Names of elements and of attributes are constants of the program, and one that could
// run something panics.
//
// Package html/template would do as much, and more than is needed: it calls methods by
// names that the linker cannot know, so a program with it keeps every method of every
// type. The command would be half as large again.
package markup

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// HTML is markup, whole and balanced. The zero HTML is nothing.
type HTML struct{ s string }

// String is the markup.
func (h HTML) String() string { return h.s }

// A Part is what an element is made of: attributes and contents, in any order.
type Part interface{ part() }

// An Attribute belongs to the element that it is given to.
type Attribute struct{ key, value string }

func (HTML) part()      {}
func (Attribute) part() {}

// void are the elements that have no contents, and no end.
var void = map[string]bool{"br": true, "hr": true, "input": true, "link": true, "meta": true}

// El is an element.
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
	if void[tag] {
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

// Text is text.
func Text(s string) HTML { return HTML{escape(s)} }

// Join is several in a row.
func Join(all ...HTML) HTML {
	var b strings.Builder
	for _, h := range all {
		b.WriteString(h.s)
	}
	return HTML{b.String()}
}

// Document is a whole document in English, with attributes of its html element.
func Document(head, body HTML, attributes ...Part) HTML {
	parts := append([]Part{Attr("lang", "en")}, attributes...)
	return HTML{"<!doctype html>\n" + El("html", append(parts, El("head", head), body)...).s + "\n"}
}

// Attr is an attribute that holds text. Those that hold a URL are for [Link], and those
// that hold a program or a style are for nobody.
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

// If is an attribute that is there if something is true.
func If(there bool, key, value string) Attribute {
	if !there {
		return Attribute{}
	}
	return Attr(key, value)
}

// Int is an attribute that holds a number.
func Int(key string, n int64) Attribute { return Attr(key, strconv.FormatInt(n, 10)) }

// Link is an attribute that holds a URL: href, src or action. One that is not relative or
// of http or https becomes "#".
func Link(key, url string) Attribute {
	mustBeName(key)
	if !harmless(url) {
		url = "#"
	}
	return Attribute{key, url}
}

// harmless reports whether a URL is relative, or of the web. Browsers leave out tabs and
// ends of lines, and blanks and controls before the scheme: nothing that has any is.
func harmless(url string) bool {
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

// escape makes text of anything. What is not UTF-8, and the character 0, which HTML does
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

// mustBeName panics for what is no name of an element or an attribute. The elements whose
// contents are no text cannot be made, but for a script that is elsewhere.
func mustBeName(s string) {
	if s == "" || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "" {
		panic("markup: " + strconv.Quote(s) + " is no name")
	}
	switch s {
	case "script", "iframe", "object", "embed", "base":
		panic("markup: the element " + s + " could run something")
	}
}

// Script is a script that is elsewhere. It runs when the document is there, or, if it is
// early, before it is drawn.
func Script(url string, early bool) HTML {
	if !harmless(url) {
		panic("markup: a script from " + strconv.Quote(url))
	}
	wait := " defer"
	if early {
		wait = ""
	}
	return HTML{`<script src="` + escape(url) + `"` + wait + `></script>`}
}
