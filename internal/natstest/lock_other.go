//go:build !unix

package natstest

// lock does nothing: tests of one package build the server once.
func lock(string) (unlock func(), err error) { return func() {}, nil }

// Pause is for systems that can.
func (s *Server) Pause() (resume func()) {
	s.tb.Skipf("a process cannot be paused here")
	return func() {}
}

// Stop ends the process.
func (s *Server) Stop() { s.Kill() }
