package postgreslock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
)

// A claim is given up between its last change and the COMMIT, which comes late. Its
// release waits for that, so it leaves no lease without a holder.
func TestAClaimWhoseCommitComesLateIsReleased(t *testing.T) {
	t.Parallel()
	server, url, name := fresh(t)
	proxy := servertest.StartProxy(t, server.Addr)
	d := start(t, "postgres://postgres@"+proxy.Addr+"/"+name+"?sslmode=disable&default_query_exec_mode=exec")
	other, c := start(t, url), mutex("job")
	short, giveUp := context.WithCancel(ctx)
	defer giveUp()
	answered := make(chan error)
	var letGo func()
	for begun := false; !begun; {
		for _, d := range []driver.Driver{d, other} { // what the first one has seen is old now
			before := mutex("job")
			gets(t, d, before)
			releases(t, d, before)
		}
		var committing <-chan struct{}
		committing, letGo = proxy.HoldFrom("COMMIT\x00") // not BEGIN, which has READ COMMITTED in it
		go func() {
			_, err := d.Acquire(short, c)
			answered <- err
		}()
		select {
		case <-committing:
			begun = true
		case err := <-answered: // it has learned of the other's release, and needs no transaction
			if letGo(); err != nil {
				t.Fatal(err)
			}
			releases(t, d, c)
		}
	}
	held := time.Now()
	giveUp()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Fatalf("%v; want it given up", err)
	}
	released := make(chan error, 1)
	go func() { released <- d.Release(ctx, lease(c)) }()
	select {
	case err := <-released:
		// The server rolls back a transaction that is idle for 5 s. On a slow machine
		// that happens before waiting has polled, and then there is nothing to release.
		if err != nil && !errors.Is(err, driver.ErrNoSuchLease) || time.Since(held) < 4*time.Second {
			t.Fatalf("%v, before the claim was committed or undone", err)
		}
		released <- nil
	case <-waiting(t, url):
	}
	letGo()
	if err := <-released; err != nil {
		t.Errorf("%v; want it released", err)
	}
	gets(t, start(t, url), mutex("job"))
}
