package driver

import (
	"context"
	"fmt"
)

// Open makes a driver from a URL. If the URL cannot be read, or no imported backend
// registered its scheme, the error is an [*InvalidError].
func Open(ctx context.Context, rawURL string) (Driver, error) {
	if ctx == nil {
		return nil, invalid("ctx", "is nil", "a context")
	}
	u, err := ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	openersMu.RLock()
	open, known := openers[u.Scheme]
	openersMu.RUnlock()
	schemes := Schemes()
	switch {
	case u.Scheme == "":
		return nil, invalid("URL", "has no scheme", list(schemes))
	case !known && !schemeIsSafeToShow(rawURL):
		return nil, invalid("URL", "has a scheme that no imported backend registered", list(schemes))
	case !known:
		allowed := list(schemes)
		if pkg := packageOf(u.Scheme); pkg != "" {
			allowed += `; import a backend for its URLs: import _ "github.com/pawl-go/pawl/` + pkg + `"`
		}
		return nil, invalid("URL", fmt.Sprintf("has the scheme %q, which no imported backend registered", u.Scheme), allowed)
	}
	return open(ctx, u)
}
