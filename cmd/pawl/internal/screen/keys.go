package screen

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Key is a pressed key: a character as it is ("q", "é"), or the name of a key: "enter",
// "esc", "tab", "backspace", "delete", "up", "down", "left", "right", "home", "end",
// "pgup", "pgdown", "ctrl+c", "alt+x".
type Key string

// Rune is the character of a key that has one.
func (k Key) Rune() (r rune, ok bool) {
	r, n := utf8.DecodeRuneInString(string(k))
	return r, n == len(k) && n > 0 && r != utf8.RuneError
}

// A terminal sends these around pasted text, if a program has asked for them.
const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// longestSequence is the largest length of an escape sequence, in bytes. Longer input is
// dropped.
const longestSequence = 256

// decode reads the first key of the input, and returns the number of its bytes: 0 if the
// key is incomplete, but never if last is set. A key without use is "".
//
// last means that no input has come for a while. Then a lone ESC is the Esc key.
func decode(sent []byte, last bool) (k Key, n int) {
	c := sent[0]
	switch {
	case c == 0x1b:
		return decodeEscape(sent, last)
	case c == '\r', c == '\n':
		return "enter", 1
	case c == '\t':
		return "tab", 1
	case c == 0x7f, c == '\b':
		return "backspace", 1
	case c == 0:
		return "", 1
	case c < 0x1b:
		return "ctrl+" + Key('a'+c-1), 1
	case c < ' ':
		return "", 1
	case c < utf8.RuneSelf:
		return Key(c), 1
	case !utf8.FullRune(sent) && !last:
		return "", 0
	}
	r, n := utf8.DecodeRune(sent)
	if r == utf8.RuneError || unicode.IsControl(r) {
		return "", n
	}
	return Key(r), n
}

func decodeEscape(sent []byte, last bool) (k Key, n int) {
	if len(sent) == 1 {
		if last {
			return "esc", 1
		}
		return "", 0
	}
	var end int // the index behind the sequence; -1 if it is incomplete
	switch sent[1] {
	case '[':
		from := 2
		if len(sent) > 2 && sent[2] == '[' {
			from = 3 // function keys on the console of Linux
		}
		end = sequenceEnd(sent, from)
	case 'O': // one more character, perhaps after a modifier
		end = sequenceEnd(sent, 2)
	case ']', 'P', '_', '^': // an unrequested answer, up to BEL or ESC \
		end = stringEnd(sent)
	case 0x1b:
		return "esc", 1
	default:
		inner, n := decode(sent[1:], last)
		if n == 0 {
			return "", 0
		}
		if _, ok := inner.Rune(); ok {
			return "alt+" + inner, n + 1
		}
		return "", n + 1
	}
	switch {
	case end >= 0:
		return sequenceKey(string(sent[1:end])), end
	case len(sent) > longestSequence:
		return "", len(sent)
	case last && len(sent) == 2:
		return "alt+" + Key(sent[1]), 2
	case last:
		return "", len(sent)
	}
	return "", 0
}

// sequenceEnd is the index behind the final character of a sequence, or -1. A broken
// sequence ends where it breaks.
func sequenceEnd(sent []byte, from int) int {
	for i := from; i < len(sent); i++ {
		switch c := sent[i]; {
		case c >= 0x40 && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x7e:
			return i
		}
	}
	return -1
}

func stringEnd(sent []byte) int {
	for i := 2; i < len(sent); i++ {
		switch {
		case sent[i] == '\a':
			return i + 1
		case sent[i] == '\\' && sent[i-1] == 0x1b:
			return i + 1
		}
	}
	return -1
}

// finals has the key of each sequence that ends in a letter, by that letter. numbered has
// the key of each sequence that ends in ~, by its number.
var (
	finals   = map[byte]Key{'A': "up", 'B': "down", 'C': "right", 'D': "left", 'H': "home", 'F': "end", 'M': "enter", 'Z': "backtab"}
	numbered = map[string]Key{"1": "home", "7": "home", "4": "end", "8": "end", "3": "delete", "5": "pgup", "6": "pgdown"}
)

// sequenceKey is the key of a sequence without its ESC. It ignores modifiers.
func sequenceKey(s string) Key {
	if len(s) < 2 {
		return "" // the sequence is broken
	}
	final, parameters := s[len(s)-1], s[1:len(s)-1]
	number, _, modified := strings.Cut(parameters, ";")
	switch {
	case final == '~' && s[0] == '[':
		return numbered[number]
	case parameters == "" || modified && number == "1":
		return finals[final]
	}
	return ""
}
