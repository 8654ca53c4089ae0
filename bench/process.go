package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// A holder is a separate process that holds the name "dead".
type holder struct{ cmd *exec.Cmd }

// startHolder starts a holder, and returns when it has the name.
func startHolder(addr string, c contender, ttl time.Duration) (*holder, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "BENCH_HOLD="+c.name, "BENCH_ENGINE="+c.engine, "BENCH_ADDR="+addr, "BENCH_TTL="+ttl.String())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	h := &holder{cmd}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		h.kill()
		return nil, errors.New("the holder did not get the lock")
	}
	return h, nil
}

// kill kills the process, and returns the time of the kill.
func (h *holder) kill() time.Time {
	died := time.Now()
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
	return died
}

// holdIfAsked is the process of a holder: it locks, reports that, and waits to be killed.
func holdIfAsked() {
	who := os.Getenv("BENCH_HOLD")
	if who == "" {
		return
	}
	fmt.Fprintln(os.Stderr, hold(who))
	os.Exit(1)
}

// hold returns only if it cannot hold the name.
func hold(who string) error {
	ttl, err := time.ParseDuration(os.Getenv("BENCH_TTL"))
	if err != nil {
		return err
	}
	e, err := engineOf(os.Getenv("BENCH_ENGINE"))
	if err != nil {
		return err
	}
	for _, c := range e.contenders() {
		if c.name != who {
			continue
		}
		cl, err := c.open(os.Getenv("BENCH_ADDR"), ttl)
		if err != nil {
			return err
		}
		if _, _, err := cl.lock(context.Background(), "dead"); err != nil {
			return err
		}
		fmt.Println("held")
		time.Sleep(time.Hour)
	}
	return fmt.Errorf("nobody is called %q", who)
}
