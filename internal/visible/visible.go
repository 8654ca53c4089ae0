// Package visible makes text from outside safe to show on a terminal and on a page.
package visible

import (
	"strconv"
	"strings"
	"unicode"
)

// Text is s with all characters escaped that are invisible, end the line, or turn the
// direction of the text around them.
func Text(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		}
	}
	return b.String()
}
