package mysqltest

import (
	_ "embed"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed clock.c.txt
var clockSource []byte

// A Clock is the wall clock of a server, which can be set.
type Clock struct {
	tb   TB
	file string
}

// StartWithClock starts a server whose wall clock can be set. It takes a C compiler.
func StartWithClock(tb TB, args ...string) (*Server, *Clock) {
	tb.Helper()
	dir := newFolder(tb)
	c := &Clock{tb: tb, file: filepath.Join(dir, "clock")}
	c.Set(0)
	source, shim := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		tb.Fatalf("%v", err)
	}
	if said, err := exec.Command("cc", "-O", "-shared", "-fPIC", "-o", shim, source, "-ldl").CombinedOutput(); err != nil {
		tb.Fatalf("cc: %v\n%s", err, said)
	}
	if err := os.WriteFile(filepath.Join(dir, "env"), []byte("LD_PRELOAD="+shim+"\nPAWL_CLOCK="+c.file+"\n"), 0o600); err != nil {
		tb.Fatalf("%v", err)
	}
	s, err := start(tb, dir, args)
	tb.Cleanup(s.Kill)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return s, c
}

// Set makes the clock go ahead by that, or behind.
func (c *Clock) Set(by time.Duration) {
	c.tb.Helper()
	f, err := os.OpenFile(c.file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(by)), 0)
		_ = f.Close()
	}
	if err != nil {
		c.tb.Fatalf("%v", err)
	}
}
