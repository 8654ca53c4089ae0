package visible_test

import (
	"testing"

	"github.com/pawl-go/pawl/internal/visible"
)

func TestInvisibleCharactersAreEscaped(t *testing.T) {
	for s, want := range map[string]string{
		"":                    "",
		"nightly report":      "nightly report",
		"größe 日本":            "größe 日本",
		"a\nb\tc":             `a\nb\tc`,
		"\x1b[2J":             `\x1b[2J`,
		"\u202egnp.exe":       `\u202egnp.exe`,
		"zero\u200bwidth":     `zero\u200bwidth`,
		"quotes \" and ' too": "quotes \" and ' too",
		"cut \xe6\x97":        `cut \xe6\x97`, // not UTF-8
		"what was \ufffd":     "what was \ufffd",
		"Hangul\u3164fillers": `Hangul\u3164fillers`, // letters, to Unicode
		"\u115f\u1160\uffa0":  `\u115f\u1160\uffa0`,
		"Braille\u2800":       `Braille\u2800`,
		"joined\u034f":        `joined\u034f`, // a mark without a form
		"job\ufe0f\U000e0100": `job\ufe0f\U000e0100`,
		"null\U0001d159":      `null\U0001d159`,
	} {
		if got := visible.Text(s); got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
}
