//go:build unix

package main

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "rewrite the golden files of the command's output")

var goldenFolder, _ = filepath.Abs("testdata/golden") // absolute, because some tests change the folder

// wantGolden compares output with a file, so that a diff shows each change of it.
func wantGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join(goldenFolder, name)
	if *update {
		noError(t, os.WriteFile(file, []byte(got), 0o600))
		return
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("the output differs from %s: see the diff after go test ./cmd/pawl -update\n%s", file, got)
	}
}

func TestHelpIsAsInTheGoldenFiles(t *testing.T) {
	var checkHelp func(c *cobra.Command)
	checkHelp = func(c *cobra.Command) {
		var out bytes.Buffer
		path := strings.Fields(c.CommandPath())
		code := execute(&output{out: &out, err: &out}, append(path[1:], "--help"))
		if code != 0 {
			t.Errorf("%s --help: exit code %d", c.CommandPath(), code)
		}
		wantGolden(t, strings.Join(path, "-")+".txt", out.String())
		wantWriteError(t, append(path[1:], "--help")...)
		for line := range strings.SplitSeq(out.String(), "\n") {
			if len(line) > 80 {
				t.Errorf("%s --help is wider than 80 columns: %s", c.CommandPath(), line)
			}
		}
		for _, sub := range c.Commands() {
			if c.Name() != "completion" && !sub.Hidden { // the rest is cobra's, or hidden
				checkHelp(sub)
			}
		}
	}
	checkHelp(newRoot(&output{}))
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
}

// wantWriteError checks the error when standard output cannot be written.
func wantWriteError(t *testing.T, args ...string) {
	t.Helper()
	var messages bytes.Buffer
	code := execute(&output{out: fullDisk{}, err: &messages}, args)
	if want := "write /dev/stdout: no space left on device\n"; code != exitOther || !strings.HasSuffix(messages.String(), want) {
		t.Errorf("pawl %s on a full disk: exit code %d and %q", strings.Join(args, " "), code, messages.String())
	}
}

// Output that cannot be written is an error in every command.
func TestOutputThatCannotBeWrittenIsAnError(t *testing.T) {
	dir := t.TempDir()
	noError(t, os.CopyFS(dir, os.DirFS("testdata/histories")))
	urlFlag, handle := "--url=sqlite:"+filepath.ToSlash(dir)+"/locks.db", filepath.Join(dir, "handle")
	if code := execute(&output{out: io.Discard, err: os.Stderr}, []string{"acquire", urlFlag, "--handle", handle, "x"}); code != 0 {
		t.Fatalf("acquire: exit code %d", code)
	}
	for _, args := range [][]string{
		{"help"}, {"help", "run"}, {"completion", "bash"}, {"completion", "zsh"}, {"completion", "fish"},
		{"version"}, {"--version"}, {"schema", "mysql"}, {"ls", urlFlag}, {"ls", "--json", urlFlag}, {"watch", urlFlag, "x"},
		{"show", urlFlag, "x"}, {"show", "--json", urlFlag, "x"}, {"renew", "--json", "--handle", handle, urlFlag},
		{"acquire", urlFlag, "y"}, {"acquire", "--json", urlFlag, "z"}, {"serve", "--listen", "127.0.0.1:0", urlFlag},
		{"bench", "--clients", "1", "--duration", "100ms", urlFlag}, {"break", "--yes", "--delay", "0", urlFlag, "x"},
		{"prove", "--check", filepath.Join(dir, "short.jsonl")},
	} {
		wantWriteError(t, args...)
	}
}
