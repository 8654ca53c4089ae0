package report

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/internal/markup"
)

//go:embed assets
var assets embed.FS

// The parts of the script, in their order. All are in one function.
var scriptFiles = []string{"data.js", "time.js", "rows.js", "colours.js", "paint.js", "bars.js", "overview.js", "words.js", "pick.js", "move.js", "input.js", "main.js"}

var styleFiles = []string{"style.css", "timeline.css"}

// embeddedText returns files as they are in the repository. A checkout on Windows may
// have other line ends, and then the browser would compute another hash.
func embeddedText(files []string) string {
	var b strings.Builder
	for _, f := range files {
		text, err := assets.ReadFile("assets/" + f)
		if err != nil {
			panic(err) // it is embedded
		}
		b.WriteString(strings.ReplaceAll(string(text), "\r\n", "\n"))
	}
	return b.String()
}

var (
	script = sync.OnceValue(func() string { return "(() => {\n\"use strict\";\n" + embeddedText(scriptFiles) + "})();\n" })
	style  = sync.OnceValue(func() string { return embeddedText(styleFiles) })
)

// policy allows this script and this style, and nothing else: no request of any kind.
func policy() string {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; script-src " + hash(script()) + "; style-src " + hash(style()) +
		"; base-uri 'none'; form-action 'none'"
}

// document is the whole file. Package markup makes no elements that could run something,
// so the few that do are written here. Their contents are constants, except the data,
// which is JSON without a "<".
func document(title string, body markup.HTML, data []byte) []byte {
	var b []byte
	add := func(parts ...string) {
		for _, p := range parts {
			b = append(b, p...)
		}
	}
	add("<!doctype html>\n<html lang=\"en\">\n<head>\n")
	add(markup.El("meta", markup.Attr("charset", "utf-8")).String())
	add(markup.El("meta", markup.Attr("http-equiv", "Content-Security-Policy"), markup.Attr("content", policy())).String())
	add(markup.El("meta", markup.Attr("name", "viewport"), markup.Attr("content", "width=device-width, initial-scale=1")).String())
	add(markup.El("meta", markup.Attr("name", "color-scheme"), markup.Attr("content", "light dark")).String())
	add(text("title", title).String(), "\n<style>", style(), "</style>\n</head>\n<body>\n", body.String(), "\n")
	add(`<script type="application/json" id="data">`)
	b = append(b, data...)
	add("</script>\n<script>", script(), "</script>\n</body>\n</html>\n")
	return b
}
