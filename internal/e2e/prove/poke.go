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

// The command starts one process with --server-cmd. Servers that are several processes
// belong to the harness: it stops and kills them when --failover-cmd asks it to.

// flags are the flags for a setup.
func (l *lab) flags(s setup) []string {
	args := s.args
	if s.fault == nil {
		return args
	}
	self, err := os.Executable()
	if err != nil {
		l.Fatalf("%v", err)
	}
	return append(args, "--failover-cmd", fmt.Sprintf("'%s' -poke %s", self, l.listen(s.fault)))
}

// listen does the fault for each connection, and answers when it is over.
func (l *lab) listen(fault func()) (addr string) {
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

// try returns what a server failed at.
func try(f func()) (err error) {
	defer func() { err = problem(recover()) }()
	f()
	return nil
}

// poke is the process of --failover-cmd.
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
	kill, run   func()
	pause, goOn func()
}

// disturb returns a fault: it kills one member of several and starts it again, or stops
// it for a while. The others go on meanwhile. The fault is over when all of them work
// together again.
func disturb(members []member, together func()) func() {
	return func() {
		m := members[rand.IntN(len(members))]
		begin, end := m.kill, m.run
		if rand.IntN(3) == 0 {
			begin, end = m.pause, m.goOn
		}
		begin()
		time.Sleep(time.Duration(rand.Int64N(int64(2 * time.Second))))
		end()
		together()
	}
}
