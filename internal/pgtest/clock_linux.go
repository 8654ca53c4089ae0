package pgtest

import "github.com/pawl-go/pawl/internal/timeshift"

// StartWithClock starts a server whose wall clock can be set. It needs a C compiler.
func StartWithClock(tb TB, settings ...string) (*Server, *timeshift.Clock) {
	tb.Helper()
	s := Start(tb, settings...)
	s.Stop()
	c, env := timeshift.New(tb, s.Dir)
	s.env = env
	s.Run()
	return s, c
}
