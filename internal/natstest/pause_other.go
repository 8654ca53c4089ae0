//go:build !unix

package natstest

// Pause is for systems that can.
func (s *Server) Pause() (resume func()) {
	s.tb.Skipf("a process cannot be paused here")
	return func() {}
}

// Stop ends the process.
func (s *Server) Stop() { s.Kill() }
