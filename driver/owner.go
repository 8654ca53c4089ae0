package driver

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

func (o Owner) labelKeys() []string { return slices.Sorted(maps.Keys(o.Labels)) }

// plain returns s as it is if a terminal shows it as it is, and quoted otherwise. Other
// people write labels and host names, and these must not move the cursor, hide text, or
// forge a line or a label.
func plain(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune("\" =\uFFFD", r) }) {
		return strconv.QuoteToGraphic(s)
	}
	return s
}
