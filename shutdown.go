package pawl

import (
	"context"
	"errors"
	"fmt"
)

// Shutdown closes the client as Close does, but lets holders finish first. New claims are
// refused. Waiters leave the queue and get ErrClosed. Leases are renewed until they are released
// or lost, and the functions of Do and its kin have returned. Then the client is closed.
//
// ctx bounds all of that. When it ends, the remaining leases are taken away as by Close, and the
// error matches ctx's. A Close that is called meanwhile takes them at once; a second Shutdown waits
// along with the first. A holder that waits for Shutdown deadlocks.
func (c *Client) Shutdown(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background()
	}
	late := c.finish(ctx)
	return errors.Join(late, c.Close(ctx))
}

// finish waits until nothing is held, and nobody works under what was. It goes in this order: a claim that is under way
// may become a lease, and a lease may be lost while its function runs.
func (c *Client) finish(ctx context.Context) error {
	if !over(ctx, c.refuse()) {
		return fmt.Errorf("pawl: shutdown: %w, and claims were still under way", ctx.Err())
	}
	if !over(ctx, c.renewer.Empty()) {
		what := "1 lease was"
		if n := c.renewer.Len(); n != 1 {
			what = fmt.Sprintf("%d leases were", n)
		}
		return fmt.Errorf("pawl: shutdown: %w, and %s still held", ctx.Err(), what)
	}
	if !over(ctx, c.functions.shut()) {
		return fmt.Errorf("pawl: shutdown: %w, and a function still ran whose lease was lost", ctx.Err())
	}
	return nil
}

// over waits for c, and no longer than ctx. What is over already is so also when ctx is.
func over(ctx context.Context, c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
	}
	select {
	case <-c:
		return true
	case <-ctx.Done():
		return false
	}
}
