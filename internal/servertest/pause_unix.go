//go:build unix

package servertest

import "syscall"

// Pause stops the process without ending it, until Resume.
func (p *Process) Pause() { p.Signal(syscall.SIGSTOP) }

// Resume lets a paused process go on. It does nothing if the process has been killed.
func (p *Process) Resume() {
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
	}
}
