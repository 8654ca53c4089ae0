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

// A holder is another process that holds the name "dead".
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

// runHolderProcess is the main function of a holder. It ends only by a kill or an error.
func runHolderProcess() {
	contender := os.Getenv("BENCH_HOLD")
	if contender == "" {
		return
	}
	fmt.Fprintln(os.Stderr, hold(contender))
	os.Exit(1)
}

// hold locks the name, reports that, and sleeps. It returns only an error.
func hold(contender string) error {
	ttl, err := time.ParseDuration(os.Getenv("BENCH_TTL"))
	if err != nil {
		return err
	}
	e, err := engineOf(os.Getenv("BENCH_ENGINE"))
	if err != nil {
		return err
	}
	for _, c := range e.contenders() {
		if c.name != contender {
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
	return fmt.Errorf("no contender has the name %q", contender)
}
