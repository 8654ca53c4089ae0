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

// A job has died between acquire and release. The next job has the same file. It must not
// renew the lease of the dead job, which ends after its TTL.
func TestARefusedAcquireDoesNotRenewTheOldLease(t *testing.T) {
	for _, namespace := range []string{"", "prod", "prod/eu"} {
		bubble.Test(t, func(t *testing.T) {
			loc := &location{namespace: namespace}
			c := mustGet(pawl.New(memlock.New(nil), loc.options()))(t)
			defer c.Close()
			lease := mustGet(c.Mutex("dep", pawl.WithTTL(4*time.Second)).Lock(t.Context()))(t)
			handle := mustGet(lease.Detach(t.Context()))(t)
			h := &handleFile{path: "f", oldHandle: string(handle), modTime: time.Now().Add(-2 * fenceRetention)}
			for range 3 {
				if err := h.checkReplaceable(t.Context(), c, loc); !errors.Is(err, errNotAcquired) {
					t.Errorf("the lease is held; checkReplaceable returns %v", err)
				}
				time.Sleep(1500 * time.Millisecond)
			}
			if err := h.checkReplaceable(t.Context(), c, loc); err != nil {
				t.Errorf("in %q the lease is over; checkReplaceable returns %v", namespace, err)
			}
			if stored, fence := access.LeaseOf(string(handle)); stored != lease.StoredName() || fence != lease.Fence() {
				t.Errorf("the handle is of %q (fence %d)", stored, fence)
			}
		})
	}
}
