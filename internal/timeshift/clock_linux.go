package timeshift

import (
	_ "embed"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/servertest"
)

//go:embed clock.c.txt
var clockSource []byte

// A Clock sets the wall clock of a server.
type Clock struct {
	tb   servertest.TB
	file string
}

// New makes a clock in a folder that the server can read. Start the server's processes
// with env in their environment. New needs a C compiler.
func New(tb servertest.TB, dir string) (c *Clock, env []string) {
	tb.Helper()
	c = &Clock{tb: tb, file: filepath.Join(dir, "clock")}
	c.Set(0)
	code, shim := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	basictest.NoError(tb, os.WriteFile(code, clockSource, 0o600))
	if output, err := exec.Command("cc", "-O", "-shared", "-fPIC", "-o", shim, code, "-ldl").CombinedOutput(); err != nil {
		tb.Fatalf("cc: %v\n%s", err, output)
	}
	return c, []string{"LD_PRELOAD=" + shim, "PAWL_CLOCK=" + c.file}
}

// Set sets the clock ahead by this duration, or back if it is negative.
func (c *Clock) Set(by time.Duration) {
	c.tb.Helper()
	f, err := os.OpenFile(c.file, os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // for a server of another user
	if err == nil {
		_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(by)), 0)
		_ = f.Close()
	}
	basictest.NoError(c.tb, err)
}
