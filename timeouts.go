package pawl

import (
	"cmp"
	"context"
	"time"

	"github.com/pawl-go/pawl/internal/lazyctx"
	"github.com/pawl-go/pawl/internal/trust"
)

func (s *settings) requestTimeout(ttl time.Duration) time.Duration {
	return cmp.Or(s.RequestTimeout, trust.RequestTimeout(ttl))
}

// requestContext returns a context that bounds one request to the backend. The context
// uses the space in storage, if storage is not nil and still free. The caller cancels the
// context.
func (s *settings) requestContext(ctx context.Context, storage *lazyctx.Storage, ttl time.Duration, now time.Time) *lazyctx.Context {
	return storage.WithDeadline(ctx, now.Add(s.requestTimeout(ttl)))
}

// renewTimeout bounds the renewal of a batch. If one lease makes the batch hang, the
// client splits it into smaller batches, and finally into single leases. The bound of a
// split batch leaves time for that, so that the other leases do not expire. A lease that
// is renewed alone delays no other, so it gets more time: an engine that compares and
// swaps takes several round trips while others change a name.
func (s *settings) renewTimeout(ttl time.Duration, splitBatch bool) time.Duration {
	if splitBatch {
		return min(s.requestTimeout(ttl), ttl/12)
	}
	return min(s.requestTimeout(ttl), ttl/3)
}
