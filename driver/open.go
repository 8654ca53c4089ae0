package driver

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/internal/backends"
)

// Opener makes a driver from a URL of its scheme. The driver's Close frees all that it
// opened. The Opener's errors never hold a password; u.Redacted() is safe to show.
type Opener func(ctx context.Context, u *url.URL) (Driver, error)

var (
	openersMu sync.RWMutex
	openers   = map[string]Opener{}
)

// Register makes a backend known to [Open] under a URL scheme, from its package's init.
// It panics if two packages claim the same scheme.
func Register(scheme string, open Opener) {
	openersMu.Lock()
	defer openersMu.Unlock()
	if _, dup := openers[scheme]; dup {
		panic("pawl: two backends registered the URL scheme " + scheme)
	}
	openers[scheme] = open
}

// Schemes lists the URL schemes of the backends that are imported, sorted.
func Schemes() []string {
	openersMu.RLock()
	defer openersMu.RUnlock()
	return slices.Sorted(maps.Keys(openers))
}

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
	allowed := cmp.Or(strings.Join(Schemes(), ", "), "none, because no backend is imported")
	switch {
	case u.Scheme == "":
		return nil, invalid("URL", "has no scheme", allowed)
	case !known && !schemeIsSafeToShow(rawURL):
		return nil, invalid("URL", "has a scheme that no imported backend registered", allowed)
	case !known:
		if b := backends.Of(u.Scheme); b.Folder != "" {
			allowed += `; import a backend for its URLs: import _ "github.com/pawl-go/pawl/` + b.Folder + `"`
		}
		return nil, invalid("URL", fmt.Sprintf("has the scheme %q, which no imported backend registered", u.Scheme), allowed)
	}
	return open(ctx, u)
}
