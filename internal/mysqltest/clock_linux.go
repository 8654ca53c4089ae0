package mysqltest

import "github.com/pawl-go/pawl/internal/timeshift"

// StartWithClock starts a server whose wall clock can be set. It needs a C compiler.
func StartWithClock(tb TB, args ...string) (*Server, *timeshift.Clock) {
	tb.Helper()
	s := newServer(tb, args)
	c, env := timeshift.New(tb, s.Dir)
	s.env = env
	s.Run()
	return s, c
}
