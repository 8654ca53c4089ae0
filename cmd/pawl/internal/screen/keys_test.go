package screen

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestKeys(t *testing.T) {
	for sent, want := range map[string][]Key{
		"q?/é夜":                              {"q", "?", "/", "é", "夜"},
		"\r\n\t\x7f\b":                       {"enter", "enter", "tab", "backspace", "backspace"},
		"\x03\x1a\x15":                       {"ctrl+c", "ctrl+z", "ctrl+u"},
		"\x1b[A\x1b[B\x1b[C\x1b[D":           {"up", "down", "right", "left"},
		"\x1bOA\x1bOH\x1bOF":                 {"up", "home", "end"},
		"\x1b[H\x1b[4~\x1b[5~\x1b[6~\x1b[3~": {"home", "end", "pgup", "pgdown", "delete"},
		"\x1b[1;5A\x1b[5;2~":                 {"up", "pgup"}, // with Ctrl, with Shift
		"\x1bx":                              {"alt+x"},
		"\x1b":                               {"esc"},
		"\x1b\x1b":                           {"esc", "esc"},
		"\x1b[":                              {"alt+["},
		"\x1b[99~q":                          {"q"}, // an unknown key
		"\x1b[?62;1cq":                       {"q"}, // an unrequested answer
		"\x1b]11;rgb:0/0/0\x1b\\q":           {"q"},
		"\x1bPhello\x1b\\q":                  {"q"},
		"\x1b[[Aq":                           {"q"}, // F1 on the console
		"\x1b[\x1bq":                         {"alt+q"},
		"\x00\xff\u0085q":                    {"q"},
		"\xe5\xa4":                           nil, // the rest never comes
	} {
		var typed typist
		var got []Key
		for _, e := range append(typed.keys([]byte(sent), false), typed.keys(nil, true)...) {
			got = append(got, e.Key)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q are the keys %q, want %q", sent, got, want)
		}
	}
}

// A sequence is the same key however the network has split it.
func TestKeysInParts(t *testing.T) {
	const sent = "a\x1b[Aé\x1b[5~夜\x1b[1;5Bz"
	want := []Key{"a", "up", "é", "pgup", "夜", "down", "z"}
	for cut := range sent {
		for _, parts := range [][]string{{sent[:cut], sent[cut:]}, strings.Split(sent, "")} {
			var typed typist
			var got []Key
			for _, part := range parts {
				for _, e := range typed.keys([]byte(part), false) {
					got = append(got, e.Key)
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("in the parts %q: %q", parts, got)
			}
		}
	}
}

func TestWhatIsPastedIsMarked(t *testing.T) {
	var typed typist
	var got []Event
	for _, part := range []string{"a\x1b[20", "0~yes\r", "q\x1b[201", "~b"} {
		got = append(got, typed.keys([]byte(part), false)...)
	}
	want := []Event{{Key: "a"}}
	for _, k := range []Key{"y", "e", "s", "enter", "q"} {
		want = append(want, Event{Key: k, Pasted: true})
	}
	if want = append(want, Event{Key: "b"}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

// Any input is consumed in the end, and a sequence that never ends is dropped.
func TestAnyKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("\x1b\x1b[]O~;0A\\")))
		sent := rapid.SliceOfN(bytes, 0, 600).Draw(t, "sent")
		var typed typist
		typed.keys(sent, false)
		if len(typed.sent) > longestSequence {
			t.Fatalf("%d bytes are kept", len(typed.sent))
		}
		typed.keys(nil, true)
		if typed.waits() {
			t.Fatalf("%q is left", typed.sent)
		}
	})
}
