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

// attempt returns a context that bounds one request to the backend. The context uses the
// space in storage, if storage is not nil and still free. The caller cancels the context.
func (s *settings) attempt(ctx context.Context, storage *lazyctx.Storage, ttl time.Duration, now time.Time) *lazyctx.Context {
	return storage.WithDeadline(ctx, now.Add(s.requestTimeout(ttl)))
}

// renewTimeout bounds the renewal of a batch. If one lease makes the batch hang, the
// client renews the others in smaller batches, and at last one by one. The bounds of
// these leave time for that, so that the other leases do not expire. A first batch gets
// more time: an engine that compares and swaps takes several round trips while others
// change a name.
func (s *settings) renewTimeout(ttl time.Duration, smaller bool) time.Duration {
	if smaller {
		return min(s.requestTimeout(ttl), ttl/12)
	}
	return min(s.requestTimeout(ttl), ttl/3)
}
