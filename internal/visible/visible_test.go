package visible_test

import (
	"testing"

	"github.com/pawl-go/pawl/internal/visible"
)

func TestWhatCannotBeSeenIsSpeltOut(t *testing.T) {
	for s, want := range map[string]string{
		"":                    "",
		"nightly report":      "nightly report",
		"größe 日本":            "größe 日本",
		"a\nb\tc":             `a\nb\tc`,
		"\x1b[2J":             `\x1b[2J`,
		"\u202egnp.exe":       `\u202egnp.exe`,
		"zero\u200bwidth":     `zero\u200bwidth`,
		"quotes \" and ' too": "quotes \" and ' too",
	} {
		if got := visible.Text(s); got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
}
