//go:build unix

// Package examples_test runs the examples that take a while.
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

// A newcomer copies an example into a program that Kubernetes or systemd stops with
// SIGTERM. So on SIGTERM each example ends its work, releases its locks, and exits.
func TestEachExampleEndsAtSIGTERM(t *testing.T) {
	basictest.Nightly(t, "it builds the examples")
	for _, name := range []string{"exports", "gocron", "leader", "nightly"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			program := filepath.Join(dir, name)
			if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./"+name).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			p := exec.CommandContext(t.Context(), program)
			p.Env = append(os.Environ(), "TMPDIR="+dir) // for its file
			out, err := p.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			p.Stderr = &said
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			hang := time.AfterFunc(time.Minute, func() { _ = p.Process.Kill() })
			defer hang.Stop()
			lines := bufio.NewReader(out)
			if _, err := lines.ReadString('\n'); err != nil { // it works
				t.Fatal(err)
			}
			if err := p.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			rest, _ := io.ReadAll(lines)
			_ = p.Wait()
			switch status, _ := p.ProcessState.Sys().(syscall.WaitStatus); {
			case status.Signaled():
				t.Errorf("it was ended by %v", status.Signal())
			case strings.Count(string(rest), "\n") > 3:
				t.Errorf("it went on:\n%s", rest)
			}
			t.Logf("%v\n%s%s", p.ProcessState, rest, said.String())
			// The leader and the nightly job keep their locks in a file.
			locks, err := pawl.Open(t.Context(), "sqlite:"+filepath.Join(dir, "pawl-examples.db"), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer locks.Close()
			for e, err := range locks.List(t.Context(), "") {
				held := func(h pawl.Holder) bool { return !h.Released }
				if err != nil || slices.ContainsFunc(e.Holders, held) {
					t.Errorf("after its end: %+v, %v", e, err)
				}
			}
		})
	}
}
