// Package report writes the findings of a run of pawl prove as one HTML file: the
// verdict, the rules, the violations, a timeline of all leases and faults, and the
// numbers.
//
// The file contains its style, scripts and data, and its policy forbids all requests. All
// parts except the timeline also work without scripts.
package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/internal/markup"
)

// Write writes the report of a history.
func Write(w io.Writer, h *history.History, v *check.Verdict) error {
	s := newStory(h)
	d := s.chooseClaims(v, maxDrawn)
	_, err := w.Write(newPage(s, d, v).document(s.data(d, v)))
	return err
}

//go:embed assets
var assets embed.FS

// embeddedText returns files with the line ends of the repository, because browsers
// normalize the line ends of a checkout on Windows before they compute the hash.
func embeddedText(files ...string) string {
	var b strings.Builder
	for _, f := range files {
		text, err := assets.ReadFile("assets/" + f)
		if err != nil {
			panic(err) // impossible: the files are embedded
		}
		b.WriteString(strings.ReplaceAll(string(text), "\r\n", "\n"))
	}
	return b.String()
}

var (
	// The files are the parts of one function.
	script = sync.OnceValue(func() string {
		return "(() => {\n\"use strict\";\n" + embeddedText("data.js", "time.js", "rows.js", "colours.js", "paint.js", "bars.js",
			"overview.js", "words.js", "pick.js", "move.js", "input.js", "main.js") + "})();\n"
	})
	style = sync.OnceValue(func() string { return embeddedText("style.css", "timeline.css") })
)

// policy allows only this script and this style, and no requests.
func policy() string {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; script-src " + hash(script()) + "; style-src " + hash(style()) +
		"; base-uri 'none'; form-action 'none'"
}

// document returns the whole file. It writes the style and the scripts itself, because
// package markup makes no such elements. They are constants, except the data, which is
// JSON without a "<".
func (p *page) document(data []byte) []byte {
	word, _, _ := strings.Cut(p.verdictLine, ":")
	head := markup.Join(
		markup.El("meta", markup.Attr("charset", "utf-8")),
		markup.El("meta", markup.Attr("http-equiv", "Content-Security-Policy"), markup.Attr("content", policy())),
		markup.El("meta", markup.Attr("name", "viewport"), markup.Attr("content", "width=device-width, initial-scale=1")),
		markup.El("meta", markup.Attr("name", "color-scheme"), markup.Attr("content", "light dark")),
		text("title", word+" · pawl prove"))
	return bytes.Join([][]byte{
		[]byte("<!doctype html>\n<html lang=\"en\">\n<head>\n" + head.String() + "\n<style>" + style() + "</style>\n</head>\n<body>\n"),
		[]byte(p.body().String() + "\n" + `<script type="application/json" id="data">`), data,
		[]byte("</script>\n<script>" + script() + "</script>\n</body>\n</html>\n"),
	}, nil)
}
