package fence_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/fence"
	"github.com/pawl-go/pawl/internal/fencetest"
	"github.com/pawl-go/pawl/internal/testservers"
)

func TestAPausedHolderIsRefusedByMemory(t *testing.T) {
	var guard fence.Memory
	stored := ""
	fencetest.Story(t, fencetest.Place{
		Write: func(lease *pawl.Lease, text string) error {
			return guard.Guard(t.Context(), lease.Name(), lease.Fence(), func(context.Context) error {
				stored = text
				return nil
			})
		},
		Read: func() string { return stored },
	})
}

func TestAPausedHolderIsRefusedOverHTTP(t *testing.T) {
	stored := ""
	s := httptest.NewServer(fence.Handler(new(fence.Memory), nil, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		stored = string(body)
	})))
	defer s.Close()
	client := &http.Client{Transport: &fence.Transport{Resource: func(*http.Request) string { return "report" }}}
	fencetest.Story(t, fencetest.Place{
		Write: func(lease *pawl.Lease, text string) error {
			r := must(http.NewRequestWithContext(lease.Context(), http.MethodPut, s.URL, strings.NewReader(text)))(t)
			answer := must(client.Do(r))(t)
			defer answer.Body.Close()
			return fence.ResponseError(answer)
		},
		Read: func() string { return stored },
	})
}

func TestAPausedHolderIsRefusedByS3(t *testing.T) {
	b := startS3(t)
	fencetest.Story(t, fencetest.Place{
		Write: func(lease *pawl.Lease, text string) error {
			return fence.UpdateObject(t.Context(), b, lease.Name(), lease.Fence(), report(lease.Fence(), text))
		},
		Read: func() string {
			_, text, _ := strings.Cut(string(must(b.Get(t.Context(), "report"))(t).Body), "\n")
			return strings.TrimSpace(text)
		},
	})
}

// The test of a paused holder again, through aws-sdk-go-v2 and minio-go.
func TestAPausedHolderIsRefusedByS3ThroughItsClients(t *testing.T) {
	b := startS3(t)
	program := testservers.Build(t, "s3clients")
	for _, client := range []string{"aws", "minio"} {
		t.Run(client, func(t *testing.T) {
			run := func(args ...string) (said string, err error) {
				flags := []string{"-url", strings.TrimSuffix(b.url, "/fences"), "-client", client}
				out, err := exec.CommandContext(t.Context(), program, append(flags, args...)...).Output()
				return string(out), err
			}
			if said, err := run("probe", "pawl-probe"); err != nil {
				t.Error(said)
			}
			last := func() string {
				said := must(run("read", "report"))(t)
				lines := strings.Split(strings.TrimSpace(said), "\n")
				_, text, _ := strings.Cut(lines[len(lines)-1], " ")
				return text
			}
			fencetest.Story(t, fencetest.Place{
				Write: func(lease *pawl.Lease, text string) error {
					if said, err := run("write", "report", strconv.FormatUint(lease.Fence(), 10), text); err != nil {
						return errors.New(strings.TrimSpace(said))
					}
					return nil
				},
				Read: last,
			})
			// The client gets no answer and sends the write again. The store refuses the
			// second write, because the object has changed. The data is written once.
			if said, err := run("-lose", "write", "lost", "5", "once"); err != nil {
				t.Error(said)
			}
			if said := must(run("read", "lost"))(t); said != "5 once\n" {
				t.Errorf("it is %q", said)
			}
		})
	}
}

// docs/fencing.md shows the errors that the holders get.
func TestTheDocumentShowsWhatIs(t *testing.T) {
	document := must(os.ReadFile(filepath.Join("..", "docs", "fencing.md")))(t)
	block := must(os.ReadFile(filepath.Join("..", "internal", "fencetest", "testdata", "paused.txt")))(t)
	if !bytes.Contains(document, block) {
		t.Errorf("docs/fencing.md does not show\n%s", block)
	}
}
