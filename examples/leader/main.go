// Leader elects one of several processes. The leader works until it is stopped with
// Ctrl-C or killed, and then another process leads. The others print who the leader is.
//
//	go run ./examples/leader a   # in one terminal
//	go run ./examples/leader b   # in another
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
	locks, err := pawl.Open(ctx, url, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	name := fmt.Sprint("process ", os.Getpid())
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	election := locks.Election("leader", pawl.WithTTL(3*time.Second), pawl.WithValue([]byte(name)))
	go func() {
		for leader, err := range election.Watch(ctx) {
			if err == nil && leader.Term > 0 {
				fmt.Printf("%s leads, in term %d\n", leader.Value, leader.Term)
			}
		}
	}()
	if err := election.Run(ctx, lead); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

// lead runs while this process leads.
func lead(ctx context.Context) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			fmt.Println("working")
		case <-ctx.Done():
			fmt.Println("not the leader any more:", context.Cause(ctx))
			return ctx.Err()
		}
	}
}
