package doctest

import (
	"strings"
	"testing"
)

// Times, spans and fences may differ, and "..." matches any text.
func TestComparingLinesIgnoresTimesAndFences(t *testing.T) {
	for _, c := range []struct {
		shown, printed string
		same           bool
	}{
		{"", "", true},
		{"deploy  exclusive  web-1  1763626152000001  02:22:32  5m0s left", "deploy exclusive web-1 1795316400000000 11:59:01   4m59.9s left", true},
		{"deploy  exclusive  web-1  1763626152000001", "deploy  shared  web-1  1763626152000001", false},
		{"a is free", "a is held", false},
		{"a ... c", "a b c", true},
		{"a ... c", "a b d", false},
		{"a\n...\nc", "a\nb\nb\nc", true},
		{"a\n...\nc", "a\nb\nb", false},
		{"a", "a\nb", false},
		{"a\nb", "a", false},
		{"a.b", "acb", false},
	} {
		if normalizedLinesMatch(strings.Split(c.shown, "\n"), strings.Split(c.printed, "\n")) != c.same {
			t.Errorf("%q and %q: want %v", c.shown, c.printed, c.same)
		}
	}
}

func TestABlockHasCommandsAndTheirOutput(t *testing.T) {
	b := &block{line: 10, text: "$ one \\\n> more\nprinted\n\n$ two\n"}
	got := b.commands()
	if len(got) != 2 || got[0].line != "one \\\nmore" || got[0].pageLine != 11 || strings.Join(got[0].shown, "|") != "printed|" ||
		got[1].line != "two" || len(got[1].shown) != 0 || got[1].pageLine != 15 {
		t.Errorf("%+v %+v", got[0], got[1])
	}
}
