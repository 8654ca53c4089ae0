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

// dieHolding has a process of its own lock "dead" and killed when it has it. It returns
// when that was.
func dieHolding(addr, contender string, ttl time.Duration) (time.Time, error) {
	self, err := os.Executable()
	if err != nil {
		return time.Time{}, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "BENCH_HOLD="+contender, "BENCH_ADDR="+addr, "BENCH_TTL="+ttl.String())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return time.Time{}, err
	}
	if err := cmd.Start(); err != nil {
		return time.Time{}, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	died := time.Now()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil || line != "held\n" {
		return time.Time{}, errors.New("the holder did not get the lock")
	}
	return died, nil
}

// holdIfAsked is the other side: this process locks, says so, and waits to be killed.
func holdIfAsked() {
	who := os.Getenv("BENCH_HOLD")
	if who == "" {
		return
	}
	ttl, _ := time.ParseDuration(os.Getenv("BENCH_TTL"))
	for _, c := range redisContenders() {
		if c.name != who {
			continue
		}
		cl, err := c.open(os.Getenv("BENCH_ADDR"), ttl)
		if err == nil {
			_, _, err = cl.lock(context.Background(), "dead")
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("held")
		time.Sleep(time.Hour)
	}
	os.Exit(1)
}
