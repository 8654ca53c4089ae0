// Nightly is a job that must not run twice. If it starts on three machines, or three
// times here, one process does the work. A process that starts later does nothing,
// because today's run is done.
//
//	go run ./examples/nightly & go run ./examples/nightly & go run ./examples/nightly; wait
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pawl-go/pawl"
	_ "github.com/pawl-go/pawl/sqlitelock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	url := "sqlite:" + filepath.ToSlash(filepath.Join(os.TempDir(), "pawl-examples.db"))
	locks, err := pawl.Open(ctx, url, nil) // or redis://, postgres://, ... for several machines
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	today := time.Now().UTC().Truncate(24 * time.Hour)
	ran, err := locks.Once("report:nightly").Do(ctx, pawl.TimeKey(today), report)
	switch {
	case errors.Is(err, pawl.ErrUnavailable):
		log.Fatal("it is not known whether the report was made: ", err)
	case err != nil:
		log.Fatal(err)
	case !ran:
		fmt.Println("another process has made the report")
	}
}

func report(ctx context.Context) error {
	fence, _ := pawl.FenceOf(ctx, "report:nightly")
	fmt.Println("the report is made, under fence", fence)
	select {
	case <-time.After(2 * time.Second):
		return nil
	case <-ctx.Done(): // a signal, or the lock is lost: stop
		return context.Cause(ctx)
	}
}
