package browser

import (
	"strings"
	"testing"
)

var spaceRemover = strings.NewReplacer(" ", "", "\n", "")

// Without scripts, the page shows the state at the time of loading, with a note.
func TestThePageWorksWithoutScripts(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.advance(0)
	w := newWorld(t, s.backend, nil)
	b := open(t, w.url, viewSettings{noScripts: true})
	for name, words := range map[string][]string{
		"nightly-report": {"reports-1:4127", "job=nightly-report", "reports-2:3380", "14m "},
		"exports":        {"export-1:811", "and 2 more", "3 of 4"},
		"leader:billing": {"billing-1:2218", "billing-2:1904", "1d 2h"},
	} {
		text := js[string](b, row(name)+`.innerText`)
		for _, word := range words {
			if !strings.Contains(text, word) {
				t.Errorf("the row of %s lacks %q: %s", name, word, text)
			}
		}
	}
	if !js[bool](b, row("nightly-report")+`.querySelector("progress").value > 0`) {
		t.Error("the bar is empty")
	}
	if text := b.text(); !strings.Contains(text, "Without scripts this page shows how it was when it was loaded") {
		t.Errorf("the note is missing:\n%s", text)
	}
	for _, nothing := range []string{"#link", "#theme:not([hidden])", ".js"} { // only a script can make these work
		if js[bool](b, `document.querySelector(`+quote(nothing)+`) != null`) {
			t.Errorf("there is a %s", nothing)
		}
	}
}
