package screen_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/cmd/pawl/internal/screen"
)

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"nightly":                    "nightly",
		"":                           "",
		"a\x1b[2Jb":                  `a\x1b[2Jb`,
		"\x1b]52;c;ZXZpbA==\a":       `\x1b]52;c;ZXZpbA==\a`,
		"a\nb\rc\td":                 `a\nb\rc\td`,
		"\u009b2J":                   `\u009b2J`, // one character that begins a sequence
		"a\x80\xffb":                 `a\x80\xffb`,
		"a\u202eb\u2066c\u200bd":     `a\u202eb\u2066c\u200bd`, // directions, and invisible characters
		"שלום":                       `\u05e9\u05dc\u05d5\u05dd`,
		"نسخة-7":                     `\u0646\u0633\u062e\u0629-7`,
		"夜間バッチ":                      "夜間バッチ",
		"naïve":                      "naïve",
		"nai\u0308ve":                "nai\u0308ve",
		"\u0308x":                    `\u0308x`,
		"z" + marks(40):              "z" + marks(2) + strings.Repeat(`\u0301`, 38),
		"\u3164\uffa0\u2800":         `\u3164\uffa0\u2800`, // letters without ink
		"\U000e0041\ue000\ufeff":     `\U000e0041\ue000\ufeff`,
		"🔒":                          "🔒",
		"\ufffd":                     "\ufffd",
		"한":                          "한",
		"\u1112\u1161\u11ab":         "\u1112\u1161\u11ab",
		`already \x1b escaped`:       `already \x1b escaped`,
		"\u2764\ufe0f":               "\u2764" + `\ufe0f`,
		"\U0001f468\u200d\U0001f469": "\U0001f468" + `\u200d` + "\U0001f469",
	} {
		if got := screen.Clean(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func marks(n int) string { return strings.Repeat("\u0301", n) }

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{
		"abc": 3, "夜間": 4, "nai\u0308ve": 5, "🔒x": 3, "\x1b": 4, "한": 2, "\u1112\u1161\u11ab": 2, "é": 1, "ｱ": 1, "Ａ": 2,
	} {
		if got := screen.Width(text); got != want {
			t.Errorf("%q takes %d cells, want %d", text, got, want)
		}
	}
}

func TestCutAndPad(t *testing.T) {
	for _, c := range []struct {
		text  string
		cells int
		want  string
	}{
		{"nightly", 7, "nightly"}, {"nightly", 6, "night…"}, {"nightly", 1, "…"}, {"nightly", 0, ""}, {"", 0, ""},
		{"夜間バッチ", 10, "夜間バッチ"}, {"夜間バッチ", 9, "夜間バッ…"}, {"夜間バッチ", 8, "夜間バ…"}, {"夜間", 1, "…"},
		{"a\x1bb", 4, `a\x…`},
	} {
		if got := screen.Cut(c.text, c.cells); got != c.want {
			t.Errorf("%q in %d cells is %q, want %q", c.text, c.cells, got, c.want)
		}
	}
	if got := screen.Pad("夜間バッチ", 8) + "|" + screen.Pad("a", 3) + "|"; got != "夜間バ… |a  |" {
		t.Errorf("padded: %q", got)
	}
}

// Clean escapes the control characters of any text, and a second Clean changes nothing.
// Clean keeps the Width, and Pad fills exactly the cells.
func TestAnyTextIsMadePrintable(t *testing.T) {
	anything := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(t *rapid.T) {
		text, cells := anything.Draw(t, "text"), rapid.IntRange(0, 30).Draw(t, "cells")
		clean := screen.Clean(text)
		for _, r := range clean {
			if r < ' ' || r >= 0x7f && r < 0xa0 {
				t.Fatalf("%q lets %q through", text, r)
			}
		}
		if !utf8.ValidString(clean) || screen.Clean(clean) != clean || screen.Width(clean) != screen.Width(text) {
			t.Fatalf("%q is shown as %q, and that as %q", text, clean, screen.Clean(clean))
		}
		if got := screen.Width(screen.Pad(text, cells)); got != cells {
			t.Fatalf("%q takes %d cells of %d", text, got, cells)
		}
	})
}
