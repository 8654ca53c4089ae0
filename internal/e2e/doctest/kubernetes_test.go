package doctest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	_ "github.com/pawl-go/pawl/memlock"
)

func TestTheCodeOfTheKubernetesPageIsCompiled(t *testing.T) {
	wantCompiled(t, "docs/kubernetes.md", "kubernetes_kit_test.go", 1)
}

// wantCompiled checks that a page has at least so many Go blocks, and that a file of this
// folder has them. Indentation is ignored.
func wantCompiled(t *testing.T, page, file string, atLeast int) {
	t.Helper()
	text, err := os.ReadFile(file)
	noError(t, err)
	code, shown := unindented(string(text)), 0
	for _, b := range blocks(t, page) {
		if b.info != "go" {
			continue
		}
		shown++
		if part := strings.Trim(unindented(b.text), "\n"); !strings.Contains(code, "\n"+part+"\n") {
			t.Errorf("%s:%d: %s does not have\n%s", page, b.line, file, part)
		}
	}
	if shown < atLeast {
		t.Errorf("only %d blocks of code were found in %s: is the pattern right?", shown, page)
	}
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
	leads, over := make(chan bool), make(chan error, 1)
	go func() {
		over <- lead(ctx, func(ctx context.Context) error {
			close(leads)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	ready := func() bool {
		answer := httptest.NewRecorder()
		http.DefaultServeMux.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		return answer.Code == http.StatusOK
	}
	for deadline := time.Now().Add(time.Minute); !ready(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the standby is not ready")
		}
	}
	noError(t, held.Release(t.Context()))
	<-leads
	if !ready() {
		t.Error("the leader is not ready")
	}
	sigterm()
	if err := <-over; err != nil {
		t.Error(err)
	}
}
