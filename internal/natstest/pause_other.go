//go:build !unix

package natstest

// Pause is for systems that can.
func (s *Server) Pause() (resume func()) {
	s.tb.Skipf("a process cannot be paused here")
	return func() {}
}

// Stop ends the process.
func (s *Server) Stop() { s.Kill() }

// Reload is for systems that have SIGHUP.
func (s *Server) Reload(was, config string) {
	s.tb.Skipf("a server cannot be told to read its configuration here")
}
