package servertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// A Process is the process of a server. Launch may start it again after its end.
type Process struct {
	TB  TB
	Dir string // of its files, among them the output in the file "log"

	cmd   *exec.Cmd     // nil if no process runs
	ended chan struct{} // closed when cmd has ended
}

// Launch starts the process with begin, or with cmd.Start if begin is nil.
func (p *Process) Launch(cmd *exec.Cmd, begin func(*exec.Cmd) error) {
	p.TB.Helper()
	log, err := os.OpenFile(filepath.Join(p.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	noError(p.TB, err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if begin == nil {
		begin = (*exec.Cmd).Start
	}
	noError(p.TB, begin(cmd))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	p.cmd, p.ended = cmd, ended
}

// Await waits until the server answers.
func (p *Process) Await(ask func() error) {
	p.TB.Helper()
	var err error
	for began := time.Now(); time.Since(began) < 3*time.Minute; { // only a hang takes so long
		if err = ask(); err == nil {
			return
		}
		select {
		case <-p.ended:
			p.TB.Fatalf("%s has ended: %v\n%s", p.cmd.Path, p.cmd.ProcessState, p.logEnd())
		case <-time.After(10 * time.Millisecond):
		}
	}
	p.TB.Fatalf("%s does not answer: %v\n%s", p.cmd.Path, err, p.logEnd())
}

// logEnd returns the end of the log.
func (p *Process) logEnd() []byte {
	log, _ := os.ReadFile(filepath.Join(p.Dir, "log"))
	return log[max(0, len(log)-4000):]
}

// Kill kills the process, as kill -9 does.
func (p *Process) Kill() { p.End(os.Kill) }

// End sends one signal after the other until the process has ended.
func (p *Process) End(signals ...os.Signal) {
	if p.cmd == nil {
		return
	}
	for _, signal := range signals {
		_ = p.cmd.Process.Signal(signal)
		select {
		case <-p.ended:
			p.cmd = nil
			return
		case <-time.After(10 * time.Second):
		}
	}
	p.TB.Fatalf("%s does not end\n%s", p.cmd.Path, p.logEnd())
}

// Signal sends the process a signal. Use End for signals that end it.
func (p *Process) Signal(signal os.Signal) {
	p.TB.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.TB.Fatalf("%v: %v", signal, err)
	}
}

// PID returns the ID of the process, or 0 if it does not run.
func (p *Process) PID() int {
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}
