// Package visible makes what others wrote harmless to look at, on a terminal and in a
// page.
package visible

import (
	"strconv"
	"strings"
	"unicode"
)

// Text is s with everything spelt out that could not be seen, would end the line, or
// would turn the direction of what stands beside it.
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
