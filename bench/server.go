package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is a redis-server of our own: on a free port, with no persistence, in a
// temporary folder.
type server struct {
	addr string
	cmd  *exec.Cmd
	dir  string
	c    *redis.Client
}

func startServer() (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	_ = l.Close()
	dir, err := os.MkdirTemp("", "pawl-bench")
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	s := &server{addr: addr, dir: dir, c: goRedis(addr)}
	s.cmd = exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir)
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("redis-server is needed: %w", err)
	}
	for range 200 {
		if err = s.c.Ping(context.Background()).Err(); err == nil {
			return s, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.stop()
	return nil, err
}

func (s *server) stop() {
	_ = s.c.Close()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.dir)
}

// reset empties the server.
func (s *server) reset() error { return s.c.FlushAll(context.Background()).Err() }

// commands is how often the server has run the commands of these names. What scripts call
// is counted by the server in the same way, so only those are asked for that a client
// itself sends.
func (s *server) commands(names []string) int64 {
	var n int64
	info, _ := s.c.Info(context.Background(), "commandstats").Result()
	for line := range strings.Lines(info) {
		name, stats, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "cmdstat_"), ":calls=")
		if !ok || !slices.Contains(names, name) {
			continue
		}
		calls, _, _ := strings.Cut(stats, ",")
		c, _ := strconv.ParseInt(calls, 10, 64)
		n += c
	}
	return n
}

// cpu is how much processor time the server has used.
func (s *server) cpu() time.Duration {
	info, _ := s.c.Info(context.Background(), "cpu").Result()
	var sum float64
	for line := range strings.Lines(info) {
		for _, field := range []string{"used_cpu_sys:", "used_cpu_user:"} {
			if v, ok := strings.CutPrefix(line, field); ok {
				f, _ := strconv.ParseFloat(strings.TrimSpace(v), 64)
				sum += f
			}
		}
	}
	return time.Duration(sum * float64(time.Second))
}
