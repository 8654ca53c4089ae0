//go:build !unix

package mysqltest

// Pause does nothing: processes cannot be stopped here, and no server is started.
func (*Server) Pause() {}

// Resume lets a paused process go on.
func (*Server) Resume() {}
