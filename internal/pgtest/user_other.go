//go:build !unix

package pgtest

import (
	"os"
	"os/exec"
)

func command(_ TB, dir, path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	return cmd
}

func chownToServer(TB, string) {}

func tempRoot(TB) string { return os.TempDir() }
