package fence_test

import (
	"bytes"
	"context"
	"errors"
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
	fencetest.ChecksStory(t, fencetest.ReportStore{
		Write: func(lease *pawl.Lease, text string) error {
			return guard.Guard(t.Context(), lease.Name(), lease.Fence(), func(context.Context) error {
				stored = text
				return nil
			})
		},
		Read: func() string { return stored },
	})
}

// The clients are aws-sdk-go-v2 and minio-go.
func TestAPausedHolderIsRefusedByS3ThroughItsClients(t *testing.T) {
	skipIfShort(t, "it builds versitygw")
	data := t.TempDir()
	noError(t, os.Mkdir(filepath.Join(data, "fences"), 0o700)) // a bucket
	url := "http://" + testservers.Start(t, "s3", func(addr string) []string { return []string{"-data", data, "-listen", addr} })
	program := testservers.Build(t, "s3clients")
	for _, client := range []string{"aws", "minio"} {
		t.Run(client, func(t *testing.T) {
			run := func(args ...string) (output string, err error) {
				flags := []string{"-url", url, "-client", client}
				out, err := exec.CommandContext(t.Context(), program, append(flags, args...)...).Output()
				return string(out), err
			}
			if output, err := run("probe", "pawl-probe"); err != nil {
				t.Error(output)
			}
			readLastText := func() string {
				output := must(run("read", "report"))(t)
				lines := strings.Split(strings.TrimSpace(output), "\n")
				_, text, _ := strings.Cut(lines[len(lines)-1], " ")
				return text
			}
			fencetest.ChecksStory(t, fencetest.ReportStore{
				Write: func(lease *pawl.Lease, text string) error {
					if output, err := run("write", "report", strconv.FormatUint(lease.Fence(), 10), text); err != nil {
						return errors.New(strings.TrimSpace(output))
					}
					return nil
				},
				Read: readLastText,
			})
			// The client gets no answer, and repeats the write. The store refuses the
			// second request, because the object has changed. The data is written once.
			if output, err := run("-lose", "write", "lost", "5", "once"); err != nil {
				t.Error(output)
			}
			if output := must(run("read", "lost"))(t); output != "5 once\n" {
				t.Errorf("the object is %q, want one write", output)
			}
		})
	}
}

// docs/fencing.md shows the errors that the holders get.
func TestTheDocumentShowsTheErrors(t *testing.T) {
	document := must(os.ReadFile(filepath.Join("..", "docs", "fencing.md")))(t)
	block := must(os.ReadFile(filepath.Join("..", "internal", "fencetest", "testdata", "paused.txt")))(t)
	if !bytes.Contains(document, block) {
		t.Errorf("docs/fencing.md does not show\n%s", block)
	}
}
