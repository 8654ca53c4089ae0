package mysqltest

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-go/pawl/internal/timeshift"
)

// StartWithClock starts a server whose wall clock can be set. It takes a C compiler.
func StartWithClock(tb TB, args ...string) (*Server, *timeshift.Clock) {
	tb.Helper()
	dir := newFolder(tb)
	c, env := timeshift.New(tb, dir)
	if err := os.WriteFile(filepath.Join(dir, "env"), []byte(strings.Join(env, "\n")+"\n"), 0o600); err != nil {
		tb.Fatalf("%v", err)
	}
	s, err := start(tb, dir, args)
	tb.Cleanup(s.Kill)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return s, c
}
