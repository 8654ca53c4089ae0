package doctest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/basictest"
)

// Short names for the helpers of all tests.
var noError, skipIfShort = basictest.NoError, basictest.SkipIfShort

func must[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

// The code of docs/locks.md: the body of each function is a block of the page.

type job = func(ctx context.Context) error

func guideOpen(ctx context.Context, report job) error {
	locks, err := pawl.Open(ctx, os.Getenv("PAWL_URL"), nil) // one client for the whole process
	if err != nil {
		return err
	}
	defer locks.Close()

	return locks.Mutex("report:nightly").Do(ctx, func(ctx context.Context) error {
		return report(ctx) // ctx ends when the lock is lost
	})
}

func guideTry(ctx context.Context, locks *pawl.Client, report job) error {
	ran, err := locks.Mutex("report:nightly").TryDo(ctx, report)
	if !ran && err == nil {
		log.Print("another process makes the report")
	}
	return err
}

func guideLock(ctx context.Context, locks *pawl.Client, batches []job) error {
	lease, err := locks.Mutex("import").Lock(ctx) // ctx bounds the wait, and nothing else
	if err != nil {
		return err
	}
	defer lease.Release(ctx) // works with a ctx that has ended, too
	for _, batch := range batches {
		select {
		case <-lease.Done():
			return lease.Err() // lost: stop here
		default:
		}
		if err := batch(lease.Context()); err != nil {
			return err
		}
	}
	return lease.Release(ctx) // the deferred one then changes nothing
}

func guideReadWrite(ctx context.Context, locks *pawl.Client, read, write job) error {
	config := locks.RWMutex("config")
	if err := config.RDo(ctx, read); err != nil { // beside other readers
		return err
	}
	return config.Do(ctx, write) // alone
}

func guideSemaphore(ctx context.Context, locks *pawl.Client, export, bigExport job) error {
	exports := locks.Semaphore("exports", 4)
	if err := exports.Do(ctx, export); err != nil { // four at a time, over all machines
		return err
	}
	return exports.Permits(3).Do(ctx, bigExport) // takes three of the four
}

func guideWait(ctx context.Context, locks *pawl.Client, importAll job) error {
	began := false
	err := locks.Mutex("import", pawl.WithWait(10*time.Second)).Do(ctx, func(ctx context.Context) error {
		began = true
		return importAll(ctx) // may take hours
	})
	if !began && errors.Is(err, pawl.ErrHeld) {
		return fmt.Errorf("given up after 10 s: %w", err)
	}
	return err
}

func guideMaxHold(ctx context.Context, locks *pawl.Client, syncAll job) error {
	return locks.Mutex("sync", pawl.WithMaxHold(time.Hour)).Do(ctx, syncAll)
}

func guideFinished(ctx context.Context, locks *pawl.Client, payOut job) error {
	err := locks.Mutex("payout").Do(ctx, payOut)
	if lost, ok := errors.AsType[*pawl.LostError](err); ok && lost.Finished {
		log.Printf("paid; the lock was lost before its release: %v", err)
		return nil // a retry would pay twice
	}
	return err
}

func guideNamespace(ctx context.Context, url string, report job) error {
	locks, err := pawl.Open(ctx, url, &pawl.Options{Namespace: "prod"}) // the environment
	if err != nil {
		return err
	}
	defer locks.Close()
	acme := locks.Namespace("acme")             // the tenant
	return acme.Mutex("report").Do(ctx, report) // the database stores "@prod/acme:report"
}

func guideHolders(ctx context.Context, locks *pawl.Client, w io.Writer) error {
	for entry, err := range locks.List(ctx, "import:") { // "" lists all names; Inspect reads one
		if err != nil {
			return err
		}
		for _, h := range entry.Holders {
			fmt.Fprintln(w, entry.Name, h.Owner.ShortString(), h.Fence, h.Since, h.ExpiresIn)
		}
		fmt.Fprintln(w, len(entry.Waiters), "wait")
	}
	return nil
}

func guideHeld(ctx context.Context, locks *pawl.Client, w io.Writer) {
	_, err := locks.Mutex("import:orders").TryLock(ctx)
	if held, ok := errors.AsType[*pawl.HeldError](err); ok {
		fmt.Fprintln(w, "held by", held.Holder.Owner.ShortString(),
			"for", held.RetryAfter, "at most, unless it renews")
	}
}

func guideStop(locks *pawl.Client, importBatch job) error {
	sigterm, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()

	go func() {
		for {
			err := locks.Mutex("import").Do(context.Background(), importBatch) // not with sigterm
			if errors.Is(err, pawl.ErrClosed) {
				return // Shutdown has begun
			}
			if err != nil {
				log.Print(err)
				time.Sleep(time.Second)
			}
		}
	}()

	<-sigterm.Done()
	grace, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return locks.Shutdown(grace) // returns when the last batch is done
}
