// Package inside has what redislock shares only with redlock.
package inside

import "context"

type lazyKey struct{}

// Lazy returns a ctx with which redislock.Open opens one server without a connection.
func Lazy(ctx context.Context) context.Context { return context.WithValue(ctx, lazyKey{}, true) }

// IsLazy reports whether Lazy made ctx.
func IsLazy(ctx context.Context) bool { return ctx.Value(lazyKey{}) != nil }
