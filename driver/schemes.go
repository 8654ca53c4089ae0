package driver

import (
	"context"
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

// packageOf returns the folder of the backend that registers a scheme of Pawl's own, or
// "".
func packageOf(scheme string) string {
	for _, b := range backends.All {
		if slices.Contains(b.Schemes, scheme) {
			return b.Folder
		}
	}
	return ""
}

func list(schemes []string) string {
	if len(schemes) == 0 {
		return "none, for no backend is imported"
	}
	return strings.Join(schemes, ", ")
}
