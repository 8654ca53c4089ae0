//go:build !unix

package mysqltest

// Pause does nothing: no server runs on this system.
func (*Server) Pause() {}

// Resume lets a paused process go on.
func (*Server) Resume() {}
