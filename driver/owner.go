package driver

import (
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/internal/visible"
)

// plain returns s as it is if a terminal shows it as it is, and quoted otherwise. Other
// people write labels and host names, and these must not move the cursor, hide text, or
// forge a line or a label.
func plain(s string) string {
	if visible.Text(s) != s || strings.ContainsAny(s, "\" =\uFFFD") {
		return visible.Text(strconv.QuoteToGraphic(s))
	}
	return s
}
