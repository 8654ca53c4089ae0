//go:build unix

package prove

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pawl-go/pawl/cmd/pawl/prove/worker"
)

// A process is one process of a worker. A worker whose process ends gets a new one.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner

	mu     sync.Mutex // protects orders
	orders *json.Encoder

	ended  chan struct{} // closed when the process has ended and its output is read
	killed atomic.Bool   // by a fault, or by the end of the run
}

func startProcess(command []string, c worker.Config, stderr io.Writer) (*process, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C in a terminal must reach only the controller
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, lines: bufio.NewScanner(out), orders: json.NewEncoder(in), ended: make(chan struct{})}
	p.lines.Buffer(nil, 1<<20)
	if err := p.orders.Encode(c); err != nil { // it ended at once
		p.kill()
		p.wait()
		return nil, err
	}
	return p, nil
}

// order sends a line, which is lost if the process has ended.
func (p *process) order(o worker.Order) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.orders.Encode(o)
}

// readMessages calls f for each message until the process has ended.
func (p *process) readMessages(f func(worker.Message)) {
	for p.lines.Scan() {
		var m worker.Message
		if json.Unmarshal(p.lines.Bytes(), &m) == nil { // the last one may be cut off
			f(m)
		}
	}
}

func (p *process) pause()  { _ = p.cmd.Process.Signal(unix.SIGSTOP) }
func (p *process) resume() { _ = p.cmd.Process.Signal(unix.SIGCONT) }

// kill ends the process at once, even if it is stopped.
func (p *process) kill() {
	p.killed.Store(true)
	_ = p.cmd.Process.Signal(unix.SIGKILL)
}

// wait waits for the end, and returns the exit code, or -1 after a signal.
func (p *process) wait() int {
	_ = p.cmd.Wait()
	close(p.ended)
	return p.cmd.ProcessState.ExitCode()
}
