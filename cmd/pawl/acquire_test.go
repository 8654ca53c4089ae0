package main

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/access"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/memlock"
)

// A job has died between acquire and release. Its successor tries with the same file: the
// lease ends after its TTL all the same.
func TestAcquireThatIsRefusedDoesNotRenewTheLeaseOfItsFile(t *testing.T) {
	for _, namespace := range []string{"", "prod", "prod/eu"} {
		bubble.Test(t, func(t *testing.T) {
			where := &location{namespace: namespace}
			c, err := pawl.New(memlock.New(nil), where.options())
			noError(t, err)
			defer c.Close()
			lease, err := c.Mutex("dep", pawl.WithTTL(4*time.Second)).Lock(t.Context())
			noError(t, err)
			handle, err := lease.Detach(t.Context())
			noError(t, err)
			h := &handleFile{path: "f", old: string(handle), since: time.Now().Add(-2 * remembered)}
			for range 3 {
				if err := h.replaceable(t.Context(), c, where); !errors.Is(err, errNotAcquired) {
					t.Errorf("the lease is held, and the answer %v", err)
				}
				time.Sleep(1500 * time.Millisecond)
			}
			if err := h.replaceable(t.Context(), c, where); err != nil {
				t.Errorf("in %q the lease is over, and the answer %v", namespace, err)
			}
			if stored, fence := access.LeaseOf(string(handle)); stored != lease.StoredName() || fence != lease.Fence() {
				t.Errorf("its handle is of %q (fence %d)", stored, fence)
			}
		})
	}
}
