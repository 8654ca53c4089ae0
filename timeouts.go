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

// renewTimeout bounds a renewal. If one lease makes a batch hang, the client repeats its
// leases in smaller batches, and at last one by one. The bound leaves time for that, so
// that the other leases do not expire. A lease that is renewed alone delays no other, so
// it gets more time: an engine that compares and swaps takes several round trips while
// other clients change the name.
func (s *settings) renewTimeout(ttl time.Duration, smaller bool) time.Duration {
	if smaller {
		return min(s.requestTimeout(ttl), ttl/12)
	}
	return min(s.requestTimeout(ttl), ttl/3)
}
