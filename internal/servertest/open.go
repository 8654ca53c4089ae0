package servertest

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// OpensLate opens the URL of a server that is down. The first attempt has to fail with an
// error that passes. Then run starts the server, and the next attempts find it.
func OpensLate(tb TB, url string, run func()) {
	tb.Helper()
	d, err := driver.Open(context.Background(), url)
	if err == nil {
		_ = d.Close()
		tb.Fatalf("%s was opened without its server", url)
	}
	if e, ok := errors.AsType[*driver.Error](err); !ok || e.Permanent {
		tb.Fatalf("%v; want an error that passes", err)
	}
	within, cancel := context.WithTimeout(context.Background(), 3*time.Minute) // only a hang takes so long
	defer cancel()
	var locks *pawl.Client
	done := make(chan struct{})
	go func() {
		defer close(done)
		locks, err = pawl.Open(within, url, &pawl.Options{RetryFor: time.Hour})
	}()
	run()
	<-done
	if err != nil {
		tb.Fatalf("%v; want it opened once the server is there", err)
	}
	if err := locks.Close(); err != nil {
		tb.Fatalf("%v", err)
	}
}
