// Package access lets packages of this module use parts that other packages do not
// export: the driver of a client, and the table of a memlock.Memory, for example. They
// are not for users, because a client does not notice changes that bypass it.
package access

import (
	"context"

	"github.com/pawl-go/pawl/driver"
)

// Driver returns the driver of a *pawl.Client, or nil if no constructor has made the
// client. The driver takes stored names. Package pawl sets this variable.
var Driver func(client any) driver.Driver

// Table returns the locktable.Table of a *memlock.Memory. Tests make faulty drivers of
// it. Package memlock sets this variable.
var Table func(memory any) any

// SetNamespaces sets the nested namespaces of a *pawl.Options: path has one prefix or
// more, from the outermost to the innermost. Package pawl sets this variable.
var SetNamespaces func(options any, path []string)

// LeaseOf returns the stored name and the fence of the lease of a pawl.Handle. For text
// that Attach would refuse the result means nothing. Package pawl sets this variable.
var LeaseOf func(handle string) (stored string, fence uint64)

// prefixKey is the key of WithPrefix's prefix in a ctx.
type prefixKey struct{}

// WithPrefix returns a ctx for a driver's Diagnose. Its findings then name only locks
// that begin with prefix, because all others belong to other namespaces.
func WithPrefix(ctx context.Context, prefix string) context.Context {
	return context.WithValue(ctx, prefixKey{}, prefix)
}

// Prefix returns the prefix of WithPrefix, or "".
func Prefix(ctx context.Context) string {
	prefix, _ := ctx.Value(prefixKey{}).(string)
	return prefix
}
