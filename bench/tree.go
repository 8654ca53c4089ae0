package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A serverProcess is a server with its own processes and its own folder.
type serverProcess struct {
	addr  string
	cmd   *exec.Cmd
	dir   string
	count func() int64 // returns the number of answered requests; nil if the server does not count them
	close func()       // runs before the server ends; may be nil
}

func (p *serverProcess) address() string { return p.addr }

func (p *serverProcess) calls(contender) int64 {
	if p.count == nil {
		return 0
	}
	return p.count()
}

func (p *serverProcess) stop() {
	p.halt()
	_ = os.RemoveAll(p.dir)
}

// halt ends the server, but does not delete its folder.
func (p *serverProcess) halt() {
	if p.close != nil {
		p.close()
	}
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	ended := make(chan struct{})
	go func() { _ = p.cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(3 * time.Second):
		_ = p.cmd.Process.Kill()
		<-ended
	}
}

// cpuTick is the unit in which /proc counts processor time, on all usual platforms.
const cpuTick = 10 * time.Millisecond

// cpu returns the processor time of the process and of its running and ended children.
func (p *serverProcess) cpu() time.Duration {
	var sum int64
	for _, pid := range processTree(p.cmd.Process.Pid) {
		fields := procStat(pid)
		if len(fields) < 17 {
			continue
		}
		times := fields[13:15] // of the process itself
		if pid == p.cmd.Process.Pid {
			times = fields[13:17] // and of the children that it has waited for
		}
		for _, f := range times {
			n, _ := strconv.ParseInt(f, 10, 64)
			sum += n
		}
	}
	return time.Duration(sum) * cpuTick
}

// procStat returns the fields of /proc/PID/stat, from index 0.
func procStat(pid int) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, ok := strings.Cut(string(text), ") ") // the name of the process may have spaces
	if !ok {
		return nil
	}
	return append([]string{strconv.Itoa(pid), ""}, strings.Fields(after)...)
}

// processTree returns a process and all its descendants.
func processTree(pid int) []int {
	all := []int{pid}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, f := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(f); err == nil {
				all = append(all, processTree(child)...)
			}
		}
	}
	return all
}

// freeAddr returns an address of this host on which no process listens.
func freeAddr() (addr, port string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	defer l.Close()
	addr = l.Addr().String()
	_, port, err = net.SplitHostPort(addr)
	return addr, port, err
}

// buildServer builds a test server from its module, and returns the program's path.
func buildServer(name string) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "pawl-bench", name)
	module, err := filepath.Abs(filepath.Join("..", "internal", "testservers", name))
	if err != nil {
		return "", err
	}
	workspace := filepath.Join(module, "go.work")
	if _, err := os.Stat(workspace); err != nil {
		workspace = "off"
	}
	build := exec.Command("go", "build", "-C", module, "-o", bin, ".")
	build.Env = append(os.Environ(), "GOWORK="+workspace)
	out, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s cannot be built: %w\n%s", name, err, out)
	}
	return bin, nil
}

// dropPrivileges makes a command run as another user if this process is root, because
// some servers refuse to run as root. It gives that user the folder.
func dropPrivileges(cmd *exec.Cmd, dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return err
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return os.Chown(dir, uid, gid)
}

// waitReady calls try until it succeeds.
func waitReady(try func() error) (err error) {
	for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(30 * time.Millisecond) {
		if err = try(); err == nil {
			return nil
		}
	}
	return errors.Join(errors.New("the server does not answer"), err)
}
