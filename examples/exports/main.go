// Exports lets four of ten workers export at a time, even if they run on several
// machines. Here each worker is a goroutine with its own client, as in ten processes.
// Ctrl-C or SIGTERM ends the exports and the waits.
//
//	go run ./examples/exports
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pawl-go/pawl"
	_ "github.com/pawl-go/pawl/memlock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var running atomic.Int32
	var workers sync.WaitGroup
	for i := range 10 {
		workers.Go(func() {
			locks, err := pawl.Open(ctx, "mem:exports", nil) // for processes: redis://, postgres://, ...
			if err != nil {
				log.Fatal(err)
			}
			defer locks.Close()
			err = locks.Semaphore("exports", 4).Do(ctx, func(ctx context.Context) error {
				fmt.Printf("worker %d exports, one of %d\n", i, running.Add(1))
				defer running.Add(-1)
				select {
				case <-time.After(300 * time.Millisecond):
					return nil
				case <-ctx.Done(): // ends at a signal, or when the permit is lost
					return context.Cause(ctx)
				}
			})
			if err != nil {
				log.Print(err)
			}
		})
	}
	workers.Wait()
}
