//go:build !unix

package natstest

// Pause needs a system with SIGSTOP.
func (s *Server) Pause() (resume func()) {
	s.tb.Skipf("a process cannot be paused here")
	return func() {}
}

// Stop ends the process.
func (s *Server) Stop() { s.Kill() }

// Reload needs a system with SIGHUP.
func (s *Server) Reload(was, config string) {
	s.tb.Skipf("a server cannot be told to read its configuration here")
}
