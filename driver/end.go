package driver

import (
	"context"
	"time"
)

// MaxRequest is the longest time from the sending of an Acquire until it takes effect, if
// its ctx does not end sooner.
const MaxRequest = time.Minute

// End returns the time from which a request with this ctx, sent now, can no longer take
// effect: ctx's deadline, or MaxRequest from now if that is earlier. It is a time on the
// caller's clock. A driver whose requests may arrive after the caller gave up needs a
// lower bound of that time on the backend's clock:
//
// Let a reply with the backend's time b be received at r. Then End is b + (End - r) on
// the backend's clock, or a little later, because the reply took some time. Subtract a
// thousandth of the time since r, because clocks drift. The bound holds unless the
// backend's clock is set back.
func End(ctx context.Context) time.Time {
	end := time.Now().Add(MaxRequest)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(end) {
		return deadline
	}
	return end
}
