// Package inside has what redislock shares only with redlock.
package inside

import (
	"context"
	"slices"

	"github.com/pawl-go/pawl/internal/engine"
)

// URLParameters are the names of the parameters that a URL of redislock can have.
var URLParameters = slices.Concat([]string{
	"addr", "client_name", "cluster", "db", "dial_timeout", "master_name", "master_set", "prefix", "protocol", "push", "retention",
	"sentinel_password", "sentinel_username", "tracking", "wait_replicas", "wait_timeout", "write_timeout",
}, engine.TLSParameters)

type lazyKey struct{}

// Lazy returns a ctx with which redislock.Open opens one server without a connection.
func Lazy(ctx context.Context) context.Context { return context.WithValue(ctx, lazyKey{}, true) }

// IsLazy reports whether Lazy made ctx.
func IsLazy(ctx context.Context) bool { return ctx.Value(lazyKey{}) != nil }
