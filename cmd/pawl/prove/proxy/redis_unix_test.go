//go:build unix

package proxy

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/internal/redistest"
	_ "github.com/pawl-go/pawl/redislock"
)

// A client of Pawl locks through the proxy during each fault, and afterwards.
func TestPawlLocksThroughTheProxy(t *testing.T) {
	server := redistest.Start(t)
	targets, reason := Split("redis://" + server.Addr + "/1?prefix=proxied")
	if reason != "" {
		t.Fatal(reason)
	}
	p := startProxy(t, targets...)
	locks := must(pawl.Open(t.Context(), Replace("redis://"+server.Addr+"/1?prefix=proxied", p.Addresses()), nil))(t)
	defer func() { _ = locks.Close() }()
	lock := func(timeout time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		lease, err := locks.Mutex("job", pawl.WithTTL(10*time.Second)).Lock(ctx)
		if err != nil {
			return err
		}
		return lease.Release(ctx)
	}
	noError(t, lock(timeout))
	for _, kind := range history.NetworkFaults {
		end := p.Begin(Fault{Kind: kind, MaxDelay: 50 * time.Millisecond, Seed: 1})
		lockErr := lock(time.Second)
		hit := end()
		t.Logf("%s: %d hit, %v", kind, hit, lockErr)
		switch kind {
		case history.Delay, history.Silence, history.Swallow, history.Cut:
			if hit == 0 {
				t.Errorf("%s has no hits", kind)
			}
		}
		if (kind == history.Silence || kind == history.Swallow) && lockErr == nil {
			t.Errorf("%s: Lock succeeds without an answer", kind)
		}
		if err := lock(timeout); err != nil {
			t.Errorf("after %s: %v", kind, err)
		}
	}
}
