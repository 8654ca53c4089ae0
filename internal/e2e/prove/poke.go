//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"time"
)

// With --server-cmd the command can start only one process. So the harness itself starts
// servers that have several processes. It stops and kills them when --failover-cmd asks
// for it.

// flags returns the flags of the command for a setup.
func (l *lab) flags(s setup) []string {
	args := s.args
	if s.fault == nil {
		return args
	}
	self, err := os.Executable()
	if err != nil {
		l.Fatalf("%v", err)
	}
	return append(args, "--failover-cmd", fmt.Sprintf("'%s' -poke %s", self, l.serveFault(s.fault)))
}

// serveFault causes the fault for each connection, and answers when the fault has ended.
func (l *lab) serveFault(fault func()) (addr string) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		l.Fatalf("%v", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			answer := "done"
			if err := try(fault); err != nil {
				answer = strings.ReplaceAll(err.Error(), "\n", " ")
			}
			_, _ = fmt.Fprintln(c, answer)
			_ = c.Close()
		}
	}()
	l.Cleanup(func() {
		_ = listener.Close()
		<-ended
	})
	return listener.Addr().String()
}

// try calls f, and returns the error of a Fatalf in it.
func try(f func()) (err error) {
	defer func() { err = problem(recover()) }()
	f()
	return nil
}

// poke is the main function of --failover-cmd.
func poke(addr string) error {
	c, err := new(net.Dialer).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if answer = strings.TrimSpace(answer); answer != "done" {
		return errors.New(answer)
	}
	return nil
}

// A member is one server of several.
type member struct {
	kill, run     func()
	pause, resume func()
}

// disturb returns a fault that kills and restarts one of the members, or pauses it for a
// while. The fault ends when awaitRecovery returns.
func disturb(members []member, awaitRecovery func()) func() {
	return func() {
		m := members[rand.IntN(len(members))]
		begin, end := m.kill, m.run
		if rand.IntN(3) == 0 {
			begin, end = m.pause, m.resume
		}
		begin()
		time.Sleep(time.Duration(rand.Int64N(int64(2 * time.Second))))
		end()
		awaitRecovery()
	}
}
