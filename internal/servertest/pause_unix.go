//go:build unix

package servertest

import (
	"errors"
	"syscall"
)

// Pause stops the process without ending it, until Resume. It returns when the process
// has stopped.
func (p *Process) Pause() {
	p.TB.Helper()
	p.Signal(syscall.SIGSTOP)
	var status syscall.WaitStatus
	_, err := syscall.Wait4(p.PID(), &status, syscall.WUNTRACED, nil)
	for errors.Is(err, syscall.EINTR) {
		_, err = syscall.Wait4(p.PID(), &status, syscall.WUNTRACED, nil)
	}
	if err != nil || !status.Stopped() {
		p.TB.Fatalf("%s has not stopped: %v, %v", p.cmd.Path, status, err)
	}
}

// Resume continues a paused process. It has no effect if the process was killed.
func (p *Process) Resume() {
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
	}
}
