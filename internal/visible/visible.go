// Package visible makes text from outside safe to show on a terminal and on a page.
package visible

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s. It escapes characters that are invisible, end the line, or turn the
// direction of the text around them, and bytes that are not UTF-8.
func Text(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case !unicode.IsPrint(r):
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		case hidden(r) && r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		case hidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		s = s[size:]
	}
	return b.String()
}

// hidden reports whether a character is invisible. Some letters, marks and symbols are,
// such as the fillers of Hangul and the blank of Braille.
func hidden(r rune) bool {
	const brailleBlank, nullNotehead = '\u2800', '\U0001d159'
	return !unicode.IsPrint(r) || r == brailleBlank || r == nullNotehead ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
