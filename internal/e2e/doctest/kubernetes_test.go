package doctest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/basictest"
	_ "github.com/pawl-go/pawl/memlock"
)

// lead is the code of docs/kubernetes.md.
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

// A standby is ready, and so is the leader. SIGTERM ends the leader without an error.
func TestTheLeaderOfKubernetesIsReady(t *testing.T) {
	const url = "mem:kubernetes"
	t.Setenv("PAWL_URL", url)
	other, err := pawl.Open(t.Context(), url, nil)
	noError(t, err)
	defer other.Close()
	held, err := other.Mutex("scheduler").Lock(t.Context())
	noError(t, err)
	ctx, sigterm := context.WithCancel(t.Context())
	defer sigterm()
	leading, ended := make(chan bool), make(chan error, 1)
	go func() {
		ended <- lead(ctx, func(ctx context.Context) error {
			close(leading)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	ready := func() bool {
		answer := httptest.NewRecorder()
		http.DefaultServeMux.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		return answer.Code == http.StatusOK
	}
	basictest.Eventually(t, "the standby is ready", ready)
	noError(t, held.Release(t.Context()))
	<-leading
	if !ready() {
		t.Error("the leader is not ready")
	}
	sigterm()
	noError(t, <-ended)
}
