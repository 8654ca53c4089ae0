//go:build unix

package prove

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/cmd/pawl/prove/proxy"
)

// startServer starts the server in its own process group if Options has a command for it,
// and waits until it listens.
func (c *controller) startServer(ctx context.Context) error {
	if c.Server.Command == "" {
		return nil
	}
	cmd, ended := exec.Command("sh", "-c", c.Server.Command), make(chan struct{})
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout, cmd.Stderr = c.Stderr, c.Stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("--server-cmd: %w", err)
	}
	c.server, c.serverEnded = cmd, ended
	go func() { _ = cmd.Wait(); close(ended) }()
	return c.waitListening(ctx)
}

// waitListening waits until each node of the server accepts connections.
func (c *controller) waitListening(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	for _, t := range c.targets {
		for {
			conn, err := proxy.Dial(ctx, t)
			if err == nil {
				_ = conn.Close()
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("the server that --server-cmd started does not listen on %s after a minute", t)
			}
			select {
			case <-c.serverEnded:
				return errors.New("the server that --server-cmd started has ended; the command must not return while the server runs")
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

// signal sends a signal to the server, or to its process group if the run started it.
// Unless the signal is SIGTERM, all descendants get it, too; signal returns these.
func (c *controller) signal(s syscall.Signal) (all []int) {
	pid, group := c.Server.PID, c.Server.PID
	if c.server != nil {
		pid, group = c.server.Process.Pid, -c.server.Process.Pid
	}
	if s != unix.SIGTERM {
		if s == unix.SIGKILL { // so that the server starts no process meanwhile
			_ = unix.Kill(group, unix.SIGSTOP)
		}
		all = descendants(pid)
	}
	_ = unix.Kill(group, s)
	for _, p := range all {
		_ = unix.Kill(p, s)
	}
	return all
}

// killServer kills all processes of the server, and waits until they have ended, because
// PostgreSQL does not start while an old process still uses its data directory.
func (c *controller) killServer() {
	all := c.signal(unix.SIGKILL)
	<-c.serverEnded
	const timeout = 5 * time.Second // a container's init may never reap an ended process
	exists := func(pid int) bool { return unix.Kill(pid, 0) == nil }
	for begun := time.Now(); time.Since(begun) < timeout && slices.ContainsFunc(all, exists); {
		time.Sleep(5 * time.Millisecond)
	}
}

func (c *controller) stopServer() {
	if c.server == nil {
		return
	}
	c.signal(unix.SIGCONT)
	c.signal(unix.SIGTERM)
	select {
	case <-c.serverEnded:
	case <-time.After(20 * time.Second):
		c.killServer()
	}
}

// faultServer causes one fault of the server after the other. The pause after a fault is
// longer than the fault, because the fault disturbs all workers.
func (c *controller) faultServer(ctx context.Context, dice *rand.Rand, kinds []string) {
	var lastFault time.Duration // the duration of the last fault
	for i := dice.IntN(len(kinds)); ; i++ {
		if sleep(ctx, max(between(dice, c.TTL, 4*c.TTL), 2*lastFault)); ctx.Err() != nil {
			return
		}
		f := history.Fault{Kind: kinds[i%len(kinds)], Worker: -1, From: c.now(), Hit: 1}
		var err error
		switch f.Kind {
		case history.ServerStop:
			c.signal(unix.SIGSTOP)
			sleep(context.Background(), between(dice, c.TTL/4, c.TTL+c.TTL/2))
			c.signal(unix.SIGCONT)
		case history.ServerKill:
			c.killServer()
			sleep(context.Background(), between(dice, 0, c.TTL/2))
			err = c.startServer(context.Background())
		case history.ServerRestart:
			c.stopServer()
			err = c.startServer(context.Background())
		case history.FailOver:
			err = c.failOver()
		}
		f.To = c.now()
		lastFault = time.Duration(f.To - f.From)
		if err != nil {
			f.Hit = 0
			c.Say("the server: %s: %v", f.Kind, err)
		}
		c.noteFault(f)
	}
}

func (c *controller) failOver() error {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "sh", "-c", c.Server.FailOver).CombinedOutput(); err != nil {
		return fmt.Errorf("--failover-cmd: %w: %s", err, out)
	}
	return nil
}
