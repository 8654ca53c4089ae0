package pawl

import "context"

// WaitFree returns when nobody holds the name or waits for it, and it is not closed. It
// takes no lock and no place in the queue, so the name may be held again a moment later:
// to do something while nobody else does, use [Mutex.Do]. It costs what [Client.Watch]
// costs.
//
// ctx bounds the wait. The error matches ctx's, and also ErrHeld when a deadline ended
// the wait; ErrUnavailable when the backend failed for longer than Options.RetryFor; and
// ErrInvalid or ErrClosed.
func (c *Client) WaitFree(ctx context.Context, name string) error {
	var held error
	for e, err := range c.Watch(ctx, name) {
		if err != nil {
			return err
		}
		if len(e.Holders) == 0 && len(e.Waiters) == 0 && e.ClosedFor == 0 {
			return nil
		}
		why := &HeldError{Name: c.StoredName(name), Holders: len(e.Holders), ClosedFor: e.ClosedFor}
		if why.Holders > 0 {
			why.Holder = e.Holders[0]
		}
		held = why
	}
	return gaveUp(ctx, c.StoredName(name), held)
}
