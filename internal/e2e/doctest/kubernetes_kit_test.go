package doctest

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pawl-go/pawl"
)

// The code of docs/kubernetes.md.

func lead(ctx context.Context, work func(ctx context.Context) error) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	locks, err := pawl.Open(ctx, os.Getenv("PAWL_URL"), nil)
	if err != nil {
		return err
	}
	defer locks.Close()
	election := locks.Election("scheduler", pawl.WithTTL(15*time.Second))
	http.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := election.Status(); err != nil && !errors.Is(err, pawl.ErrHeld) {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	if err := election.Run(ctx, work); ctx.Err() == nil {
		return err
	}
	return nil // SIGTERM
}
