package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// BenchmarkRunTrue measures the whole process `pawl run x -- true`, on an existing file.
// For comparison, it starts two processes without pawl, one of which runs the other.
func BenchmarkRunTrue(b *testing.B) {
	exe := filepath.Join(b.TempDir(), "pawl")
	if runtime.GOOS == "windows" {
		exe += ".exe"
	}
	if out, err := exec.Command("go", "build", "-trimpath", "-o", exe, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	env := append(os.Environ(), "PAWL_URL="+fileURL(filepath.Join(b.TempDir(), "locks.db")))
	for _, c := range []struct {
		name string
		args []string
	}{
		{"pawl", []string{exe, "run", "x", "--", "true"}},
		{"env", []string{"env", "sh", "-c", "true; true"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			run := func() {
				cmd := exec.Command(c.args[0], c.args[1:]...)
				cmd.Env = env
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
			}
			run() // creates the file, and fills the caches
			for b.Loop() {
				run()
			}
		})
	}
}
