package lazyctx

import "context"

// CallerDone returns a channel that is closed when the caller of ctx gives up. Unlike
// ctx.Done(), it ignores the deadline of the request. A driver that watches that deadline
// itself needs no timer, which would cost more than the rest of a fast request. For a ctx
// that does not separate the two, CallerDone returns ctx.Done().
//
// It is nil if the caller never gives up.
func CallerDone(ctx context.Context) <-chan struct{} {
	if c, ok := ctx.(interface{ CallerDone() <-chan struct{} }); ok {
		return c.CallerDone()
	}
	return ctx.Done()
}

// Caller returns the context of the caller: ctx without the deadline of the request.
func Caller(ctx context.Context) context.Context {
	if c, ok := ctx.(*Context); ok {
		return c.Context
	}
	return ctx
}
