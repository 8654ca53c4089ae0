//go:build unix

package redislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
)

// The server gets the attempt when its caller no longer waits for the answer. When asked
// again, it answers with the grant that it made, and a release frees the name.
func TestAnAnswerThatWasLostIsGivenAgain(t *testing.T) {
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr)
	warm := mutex("warm") // loads the scripts: otherwise only their names arrive
	gets(t, d, warm)
	releases(t, d, warm)
	hurry := func(f func(context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // its end is far away, so that it arrives before that
		defer cancel()
		server.Pause()
		defer server.Resume()
		time.AfterFunc(100*time.Millisecond, cancel)
		if err := f(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("%v; want the end of the ctx", err)
		}
	}
	c := mutex("job")
	hurry(func(ctx context.Context) error { _, err := d.Acquire(ctx, c); return err })
	made := holder(t, d)
	if g := gets(t, d, c); g.Fence != made {
		t.Errorf("fence %d, and the server made the grant %d", g.Fence, made)
	}
	hurry(func(ctx context.Context) error { return d.Release(ctx, lease(c)) })
	for tries := 0; ; tries++ {
		e, err := d.Inspect(ctx, "job")
		if err == nil && len(e.Holders) == 0 {
			break
		}
		if tries == 12000 {
			t.Fatal(e, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := d.Release(ctx, lease(c)); !errors.Is(err, driver.ErrNoSuchLease) {
		t.Errorf("%v; want ErrNoSuchLease", err)
	}
}

// holder waits until the name is held, and returns the fence.
func holder(t *testing.T, d driver.Driver) uint64 {
	t.Helper()
	for range 12000 {
		if e, err := d.Inspect(ctx, "job"); err == nil && len(e.Holders) == 1 {
			return e.Holders[0].Fence
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the attempt did not arrive")
	return 0
}
