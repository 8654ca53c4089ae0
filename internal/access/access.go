// Package access gives packages of this module what others do not export, such as the
// driver of a client and the table of a memory. Users have no use for them: the client
// would not know of what they change there.
package access

import (
	"context"

	"github.com/pawl-go/pawl/driver"
)

// Driver returns the driver of a *pawl.Client, which takes names as they are stored, or
// nil if no constructor has made the client. Package pawl sets it.
var Driver func(client any) driver.Driver

// Table returns the locktable.Table of a *memlock.Memory, for drivers that do one thing
// wrong. Package memlock sets it.
var Table func(memory any) any

// SetNamespaces sets the namespace of a *pawl.Options that is inside others: path has the
// prefixes from the outermost to the innermost, one at least. Package pawl sets it.
var SetNamespaces func(options any, path []string)

// LeaseOf returns the stored name and the fence of the lease of a pawl.Handle. The result
// for another text means nothing, and Attach refuses that text. Package pawl sets it.
var LeaseOf func(handle string) (stored string, fence uint64)

// prefixKey is the key under which a ctx has the prefix of WithPrefix.
type prefixKey struct{}

// WithPrefix returns a ctx for Diagnose of a driver: its findings name no lock that does
// not begin with prefix, because it belongs to another namespace.
func WithPrefix(ctx context.Context, prefix string) context.Context {
	return context.WithValue(ctx, prefixKey{}, prefix)
}

// Prefix returns the prefix of WithPrefix, or "".
func Prefix(ctx context.Context) string {
	prefix, _ := ctx.Value(prefixKey{}).(string)
	return prefix
}
