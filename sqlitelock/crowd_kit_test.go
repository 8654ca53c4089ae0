package sqlitelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
)

// childCrowds lets many clients lock one name again and again, each with its own driver,
// like a process. After three seconds it begins to count, and then prints the numbers of
// grants and errors, and the longest wait in milliseconds.
func childCrowds(path string) {
	clients, _ := strconv.Atoi(os.Getenv(childClients))
	seconds, _ := strconv.Atoi(os.Getenv(childSeconds))
	crowdCtx, stop := context.WithCancel(ctx)
	var counting atomic.Bool
	var grants, errs, longest atomic.Int64
	var all sync.WaitGroup
	for range clients {
		d, err := asDriver(OpenFile(ctx, path, nil))
		panicOn(err)
		c, err := pawl.New(d, &pawl.Options{Observer: &pawl.Observer{}})
		panicOn(err)
		all.Go(func() {
			for crowdCtx.Err() == nil {
				began := time.Now()
				l, err := c.Mutex("crowd").Lock(crowdCtx)
				switch {
				case err == nil:
					if counting.Load() {
						grants.Add(1)
						if took := int64(time.Since(began)); took > longest.Load() {
							longest.Store(took)
						}
					}
					err = l.Release(ctx)
				case crowdCtx.Err() != nil:
					err = nil
				}
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
				if err != nil && !errors.Is(err, context.Canceled) {
					errs.Add(1)
				}
			}
			if err := c.Close(); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		})
	}
	fmt.Println("ready")
	time.Sleep(3 * time.Second)
	counting.Store(true)
	time.Sleep(time.Duration(seconds) * time.Second)
	fmt.Println(grants.Load(), errs.Load(), time.Duration(longest.Load()).Milliseconds())
	stop()
	all.Wait()
}
