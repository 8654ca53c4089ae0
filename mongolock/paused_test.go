package mongolock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// When the server hangs, calls return when their ctx ends, and what was sent meanwhile is
// void when it goes on.
func TestAServerThatIsPaused(t *testing.T) {
	t.Parallel()
	server := ferret(t)
	db := database()
	d, other := open(t, server.at(server.addr, db)), open(t, server.at(server.addr, db))
	held, late := mutex("held"), mutex("late")
	first := gets(t, d, held)
	gets(t, d, mutex("warm"))
	server.Pause()
	defer server.Resume()
	for what, call := range map[string]func(ctx context.Context) error{
		"acquire": func(ctx context.Context) error { _, err := d.Acquire(ctx, late); return err },
		"renew":   func(ctx context.Context) error { _, err := d.Renew(ctx, []driver.LeaseRef{lease(held)}); return err },
		"inspect": func(ctx context.Context) error { _, err := d.Inspect(ctx, "held"); return err },
	} {
		began := time.Now()
		if err := call(within(t, 300*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v; want the end of its ctx", what, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s took %v, with 300ms to go", what, took)
		}
	}
	server.Resume()
	// The claim was given up before its end, so it can hold nothing after it.
	if g := gets(t, other, mutex("late")); g.Fence <= first.Fence {
		t.Errorf("fence %d after %d", g.Fence, first.Fence)
	}
	answers, err := d.Renew(within(t, 10*time.Second), []driver.LeaseRef{lease(held)})
	if err != nil || answers[0] != nil {
		t.Errorf("%v, %v; want it held over the pause", answers, err)
	}
}
