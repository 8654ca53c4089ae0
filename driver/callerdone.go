package driver

import "context"

// CallerDone is closed when the caller of ctx gives up. It is ctx.Done() without the
// deadline of the request, for drivers that keep that one themselves: then no timer is
// made for it, which would cost more than the rest of a request that is answered quickly.
// With a ctx that cannot tell the two apart it is ctx.Done().
//
// It is nil if the caller never gives up.
func CallerDone(ctx context.Context) <-chan struct{} {
	if c, ok := ctx.(interface{ CallerDone() <-chan struct{} }); ok {
		return c.CallerDone()
	}
	return ctx.Done()
}
