//go:build !unix

package servertest

// Pause skips the test: a process cannot be paused here.
func (p *Process) Pause() { p.TB.Skipf("a process cannot be paused here") }

// Resume lets a paused process go on.
func (p *Process) Resume() {}
