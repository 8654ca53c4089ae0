//go:build unix

// Package examples_test runs the examples that run for a while.
package examples_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/basictest"
	_ "github.com/pawl-go/pawl/sqlitelock"
)

// Users copy the examples into programs that Kubernetes or systemd stops with SIGTERM. So
// on SIGTERM each example ends its work, releases its locks, and exits.
func TestEachExampleEndsAtSIGTERM(t *testing.T) {
	basictest.SkipIfShort(t, "it builds the examples")
	for _, name := range []string{"exports", "gocron", "leader", "nightly"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			program := filepath.Join(dir, name)
			if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./"+name).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			p := exec.CommandContext(t.Context(), program)
			p.Env = append(os.Environ(), "TMPDIR="+dir) // for the file of its locks
			out, err := p.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var stderr strings.Builder
			p.Stderr = &stderr
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			killTimer := time.AfterFunc(time.Minute, func() { _ = p.Process.Kill() })
			defer killTimer.Stop()
			lines := bufio.NewReader(out)
			if _, err := lines.ReadString('\n'); err != nil { // the example has begun its work
				t.Fatal(err)
			}
			if err := p.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			rest, _ := io.ReadAll(lines)
			_ = p.Wait()
			switch status, _ := p.ProcessState.Sys().(syscall.WaitStatus); {
			case status.Signaled():
				t.Errorf("%v ended the example, want it to exit", status.Signal())
			case strings.Count(string(rest), "\n") > 3:
				t.Errorf("the example went on:\n%s", rest)
			}
			t.Logf("%v\n%s%s", p.ProcessState, rest, stderr.String())
			// The leader and the nightly job keep their locks in a file.
			locks, err := pawl.Open(t.Context(), "sqlite:"+filepath.Join(dir, "pawl-examples.db"), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer locks.Close()
			for e, err := range locks.List(t.Context(), "") {
				held := func(h pawl.Holder) bool { return !h.Released }
				if err != nil || slices.ContainsFunc(e.Holders, held) {
					t.Errorf("a lock is still held: %+v, %v", e, err)
				}
			}
		})
	}
}
